/* Gradients written by hand, as an extension of Python: the bound for compiled ones. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdlib.h>

static PyObject *g_sincos(PyObject *self, PyObject *const *a, Py_ssize_t n) {
    double x = PyFloat_AsDouble(a[0]);
    return PyFloat_FromDouble(-sin(x) * cos(cos(x)));
}

static PyObject *g_loop(PyObject *self, PyObject *const *a, Py_ssize_t n) {
    double x = PyFloat_AsDouble(a[0]), ys[1000], y = x, yb = 1, xb = 0;
    for (int i = 0; i < 1000; i++) { ys[i] = y; y *= x; }
    for (int i = 999; i >= 0; i--) { xb += yb * ys[i]; yb *= x; }
    return PyFloat_FromDouble(xb + yb);
}

static PyObject *g_newton(PyObject *self, PyObject *const *a, Py_ssize_t n) {
    double x = PyFloat_AsDouble(a[0]), ys[64], y = x, yb = 1, xb = 0;
    int k = 0;
    while (fabs(y * y - x) > 1e-12 * x && k < 64) { ys[k++] = y; y = 0.5 * (y + x / y); }
    while (k) {
        double q = ys[--k], t = 0.5 * yb;
        xb += t / q;
        yb = t - t * x / (q * q);
    }
    return PyFloat_FromDouble(xb + yb);
}

static void f(const double *u, double *o) {
    o[0] = 10. * (u[1] - u[0]);
    o[1] = u[0] * (28. - u[2]) - u[1];
    o[2] = u[0] * u[1] - 8. / 3 * u[2];
}

static void back(const double *u, const double *o, double *b) {
    b[0] += -10. * o[0] + (28. - u[2]) * o[1] + u[1] * o[2];
    b[1] += 10. * o[0] - o[1] + u[0] * o[2];
    b[2] += -u[0] * o[1] - 8. / 3 * o[2];
}

static void plus(const double *u, double c, const double *k, double *v) {
    for (int i = 0; i < 3; i++) v[i] = u[i] + c * k[i];
}

static PyObject *g_lorenz(PyObject *self, PyObject *const *a, Py_ssize_t n) {
    static double saved[1000][3];
    const double h = 0.01;
    double u[3];
    for (int i = 0; i < 3; i++) u[i] = PyFloat_AsDouble(a[i]);
    double k1[3], k2[3], k3[3], k4[3], v1[3], v2[3], v3[3];
    for (int t = 0; t < 1000; t++) {
        for (int i = 0; i < 3; i++) saved[t][i] = u[i];
        f(u, k1); plus(u, .5 * h, k1, v1); f(v1, k2); plus(u, .5 * h, k2, v2);
        f(v2, k3); plus(u, h, k3, v3); f(v3, k4);
        for (int i = 0; i < 3; i++) u[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
    }
    double b[3] = {1, 0, 0};
    for (int t = 999; t >= 0; t--) {
        double *w = saved[t], b1[3], b2[3], b3[3], b4[3], c[3], d[3];
        f(w, k1); plus(w, .5 * h, k1, v1); f(v1, k2); plus(w, .5 * h, k2, v2);
        f(v2, k3); plus(w, h, k3, v3);
        for (int i = 0; i < 3; i++) {
            b1[i] = b4[i] = h / 6 * b[i]; b2[i] = b3[i] = h / 3 * b[i]; d[i] = b[i];
        }
        c[0] = c[1] = c[2] = 0; back(v3, b4, c);
        for (int i = 0; i < 3; i++) { d[i] += c[i]; b3[i] += h * c[i]; }
        c[0] = c[1] = c[2] = 0; back(v2, b3, c);
        for (int i = 0; i < 3; i++) { d[i] += c[i]; b2[i] += .5 * h * c[i]; }
        c[0] = c[1] = c[2] = 0; back(v1, b2, c);
        for (int i = 0; i < 3; i++) { d[i] += c[i]; b1[i] += .5 * h * c[i]; }
        c[0] = c[1] = c[2] = 0; back(w, b1, c);
        for (int i = 0; i < 3; i++) b[i] = d[i] + c[i];
    }
    return Py_BuildValue("ddd", b[0], b[1], b[2]);
}

static int lefts[4096], rights[4096], count;
static double numbers[4096], values[4096], input, input_bar;

static PyObject *g_pack(PyObject *self, PyObject *const *a, Py_ssize_t n) {
    count = (int)PyList_Size(a[0]);
    for (int i = 0; i < count; i++)
        if (!PyArg_ParseTuple(PyList_GetItem(a[0], i), "iid", lefts + i, rights + i, numbers + i))
            return NULL;
    Py_RETURN_NONE;
}

static double there(int i) {
    if (i < 0) return input;
    double l = there(lefts[i]), r = there(rights[i]);
    return values[i] = l * r * numbers[i];
}

static void back_again(int i, double g) {
    if (i < 0) { input_bar += g; return; }
    double l = lefts[i] < 0 ? input : values[lefts[i]];
    double r = rights[i] < 0 ? input : values[rights[i]];
    back_again(lefts[i], g * numbers[i] * r);
    back_again(rights[i], g * numbers[i] * l);
}

static PyObject *g_tree(PyObject *self, PyObject *const *a, Py_ssize_t n) {
    input = PyFloat_AsDouble(a[0]);
    input_bar = 0;
    there(0);
    back_again(0, 1);
    return PyFloat_FromDouble(input_bar);
}

#define METHOD(name) {#name, (PyCFunction)(void (*)(void))g_##name, METH_FASTCALL, NULL}
static PyMethodDef methods[] = {METHOD(sincos), METHOD(loop), METHOD(newton),
                                METHOD(lorenz), METHOD(pack), METHOD(tree), {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "staging_gradients", NULL, -1, methods};
PyMODINIT_FUNC PyInit_staging_gradients(void) { return PyModule_Create(&module); }
