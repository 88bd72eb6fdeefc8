"""The TreeLSTM in DyNet, for an interpreter that may have nothing but DyNet and NumPy.

Started by treelstm.py: reads its data from a file, then answers the lines "run" (an
epoch from the first weights; its mean loss) and "clock" (its processor time).
"""

import sys
import time

import _dynet as dy
import numpy as np

HIDDEN = 150


def tree_at(rows, place):
    """The tree that begins at a place, as (score, word, left, right), and its end."""
    score, word = int(rows[place][0]), int(rows[place][1])
    if word >= 0:
        return (score, word, None, None), place + 1
    left, place = tree_at(rows, place + 1)
    right, place = tree_at(rows, place)
    return (score, -1, left, right), place


def forest(rows):
    """All trees."""
    trees, place = [], 0
    while place < len(rows):
        tree, place = tree_at(rows, place)
        trees.append(tree)
    return trees


def parameters(arrays):
    """The parameters, each matrix applied from the left; gates apart, as is usual."""
    model = dy.ParameterCollection()

    def add(array):
        array = np.ascontiguousarray(array.T)
        return model.parameters_from_numpy(array)

    p = {"leaf": add(arrays["leaf"]), "leaf_bias": add(arrays["leaf_bias"])}
    for side in ("left", "right"):
        p[side] = [add(part) for part in np.split(arrays[side], 5, axis=1)]
    p["bias"] = [add(part) for part in np.split(arrays["bias"], 4)]
    p["out"], p["out_bias"] = add(arrays["out"]), add(arrays["out_bias"])
    return model, p


def loss(p, table, tree):
    """The loss of a tree."""
    losses = []

    def visit(tree):
        score, word, left, right = tree
        if left is None:
            x = dy.lookup(table, word, update=False)
            z = dy.affine_transform([p["leaf_bias"], p["leaf"], x])
            u, i, o = (z[k * HIDDEN : (k + 1) * HIDDEN] for k in range(3))
            c = dy.cmult(dy.logistic(i), dy.tanh(u))
        else:
            (h_l, c_l), (h_r, c_r) = visit(left), visit(right)
            u, i, o, f_l, f_r = (
                dy.affine_transform(
                    [p["bias"][b], p["left"][k], h_l, p["right"][k], h_r]
                )
                for k, b in enumerate((0, 1, 2, 3, 3))
            )
            c = dy.cmult(dy.logistic(i), dy.tanh(u))
            c = c + dy.cmult(dy.logistic(f_l), c_l) + dy.cmult(dy.logistic(f_r), c_r)
        h = dy.cmult(dy.logistic(o), dy.tanh(c))
        logits = dy.affine_transform([p["out_bias"], p["out"], h])
        losses.append(dy.pickneglogsoftmax(logits, score))
        return h, c

    visit(tree)
    return dy.esum(losses)


def main(path, batch, rate):
    """Read the data; answer."""
    settings = dy.DynetParams()
    settings.set_mem(1024)
    settings.set_autobatch(batch > 0)
    settings.init()
    arrays = dict(np.load(path))
    trees = forest(arrays.pop("trees"))
    words = dy.ParameterCollection()
    table = words.lookup_parameters_from_numpy(arrays.pop("table"))

    def run():
        model, p = parameters(arrays)
        trainer = dy.AdagradTrainer(model, rate, 1e-8)
        trainer.set_clip_threshold(-1)
        total = 0.0
        for start in range(0, len(trees), batch or 1):
            dy.renew_cg()
            some = trees[start : start + (batch or 1)]
            value = dy.esum([loss(p, table, tree) for tree in some])
            total += value.value()
            value.backward()
            trainer.update()
        return total / len(trees)

    for line in sys.stdin:
        print(run() if line.strip() == "run" else time.process_time(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
