// Kernels that take one pass over memory where CuPy's functions would take several.
//
// Arrays lie in the order of their axes, without gaps; those of float4 have a number of
// elements that four divides. Integers and numbers come as Python has them, of 64 bits.

typedef long long index;

#define ENDLESS __int_as_float(0x7f800000)

#define EACH(i, n)                                                               \
    for (index i = (index)blockIdx.x * blockDim.x + threadIdx.x; i < (n);        \
         i += (index)gridDim.x * blockDim.x)


// Moments and parameters -----------------------------------------------------

extern "C" __global__ void variance_of(index n, const float* inverse, float* variance,
                                       double eps) {
    EACH(i, n) variance[i] = fmaxf(1 / (inverse[i] * inverse[i]) - (float)eps, 0.0f);
}

__device__ float between(float x, float y, float share) {
    return x * (1 - share) + share * y;
}

extern "C" __global__ void follow(index n, float* mean, float* variance,
                                  const float* mean_now, const float* variance_now,
                                  double momentum, double factor) {
    EACH(i, n) {
        mean[i] = between(mean[i], mean_now[i], momentum);
        variance[i] = between(variance[i], variance_now[i] * (float)factor, momentum);
    }
}

// Functions of each element ---------------------------------------------------

__device__ float relu_of(float x) { return x < 0 ? 0 : x; }

__device__ float relu_bar(float z_bar, float z) { return z != 0 ? z_bar : 0 * z_bar; }

__device__ float gelu_of(float x) { return x * normcdff(x); }

__device__ float gelu_bar(float z_bar, float x) {
    return z_bar * (normcdff(x) + x * expf(-0.5f * x * x) * 0.3989422804014327f);
}

#define THERE(name, f)                                                           \
    extern "C" __global__ void name(index n, const float4* x, float4* z) {       \
        EACH(i, n) {                                                             \
            float4 a = x[i];                                                     \
            z[i] = make_float4(f(a.x), f(a.y), f(a.z), f(a.w));                  \
        }                                                                        \
    }

#define BACK(name, f)                                                            \
    extern "C" __global__ void name(index n, const float4* z_bar,                \
                                    const float4* kept, float4* x_bar) {         \
        EACH(i, n) {                                                             \
            float4 a = z_bar[i], b = kept[i];                                    \
            x_bar[i] = make_float4(f(a.x, b.x), f(a.y, b.y), f(a.z, b.z),        \
                                   f(a.w, b.w));                                 \
        }                                                                        \
    }

THERE(relu, relu_of)
BACK(relu_back, relu_bar)
THERE(gelu, gelu_of)
BACK(gelu_back, gelu_bar)

// Losses of classes: a block for each row --------------------------------------

// The largest element so far, and the sum of exponentials of what is less by it.
struct Sum {
    float top, total;

    __device__ void add(float x) {
        if (x == -ENDLESS) return;
        if (x > top) {
            total = (total == 0 ? 0 : total * expf(top - x)) + 1;
            top = x;
        } else {
            total += expf(x - top);
        }
    }

    __device__ void join(Sum other) {
        float most = fmaxf(top, other.top);
        float mine = total == 0 ? 0 : total * expf(top - most);
        float theirs = other.total == 0 ? 0 : other.total * expf(other.top - most);
        top = most;
        total = mine + theirs;
    }
};

extern "C" __global__ void entropy(index width, const float* x, const index* places,
                                   float* losses, float* logarithms) {
    __shared__ Sum sums[32];
    const float* row = x + (index)blockIdx.x * width;
    Sum sum = {-ENDLESS, 0};
    for (index i = threadIdx.x; i < width; i += blockDim.x) sum.add(row[i]);
    for (int step = 16; step; step /= 2) {
        Sum other = {__shfl_down_sync(~0u, sum.top, step),
                     __shfl_down_sync(~0u, sum.total, step)};
        sum.join(other);
    }
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < blockDim.x / 32; i++) sum.join(sums[i]);
        float found = isinf(sum.top) ? __int_as_float(0x7fffffff) : sum.top + logf(sum.total);
        logarithms[blockIdx.x] = found;
        losses[blockIdx.x] = found - x[places[blockIdx.x]];
    }
}

extern "C" __global__ void entropy_back(index width, const float* x, const index* places,
                                        const float* logarithms, const float* factors,
                                        index step, float* x_bar) {
    index start = (index)blockIdx.x * width, place = places[blockIdx.x] - start;
    float logarithm = logarithms[blockIdx.x], factor = factors[blockIdx.x * step];
    for (index i = threadIdx.x; i < width; i += blockDim.x) {
        float share = expf(x[start + i] - logarithm);
        x_bar[start + i] = factor * (i == place ? share - 1 : share);
    }
}

// Steps of optimisers: a block for each piece of one of many arrays --------------

#define PIECE 16384

// The table has, for each block, the array that it works on and the first element of
// its piece; behind these, the arrays' sizes; and then, for each, where it lies, and
// where what goes with it does.
#define PIECES(count, parts)                                                     \
    const index* sizes = table + 2 * gridDim.x;                                  \
    index which = table[2 * blockIdx.x], start = table[2 * blockIdx.x + 1];      \
    index stop = min(start + PIECE, sizes[which]);                               \
    float** arrays = (float**)(sizes + (count)) + which * (parts);               \
    for (index i = start + threadIdx.x; i < stop; i += blockDim.x)

extern "C" __global__ void adam(index count, const index* table, double fresh_,
                                double kept_, double fresh_square_, double lr_,
                                double root_, double eps_, double decay_,
                                double shrink_) {
    float fresh = fresh_, kept = kept_, fresh_square = fresh_square_, lr = lr_;
    float root = root_, eps = eps_, decay = decay_, shrink = shrink_;
    PIECES(count, 4) {
        float x = arrays[0][i] * shrink, g = arrays[1][i] + decay * x;
        float mean = arrays[2][i] + (g - arrays[2][i]) * fresh;
        float square = arrays[3][i] * kept + g * g * fresh_square;
        arrays[2][i] = mean;
        arrays[3][i] = square;
        arrays[0][i] = x - mean / (sqrtf(square) / root + eps) * lr;
    }
}

extern "C" __global__ void descend(index count, const index* table, double lr_,
                                   double momentum_, double fresh_, double decay_,
                                   index ahead) {
    float lr = lr_, momentum = momentum_, fresh = fresh_, decay = decay_;
    PIECES(count, 3) {
        float x = arrays[0][i], g = arrays[1][i] + decay * x;
        float velocity = arrays[2][i] * momentum + g * fresh;
        arrays[2][i] = velocity;
        arrays[0][i] = x - lr * (ahead ? g + momentum * velocity : velocity);
    }
}
