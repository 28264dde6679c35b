"""PT -> ONNX, checked against onnxruntime; writes the compact data files and reference logits.

usage: export.py MODELDIR FASHIONDIR OUT_MODELS OUT_DATA
"""
import json, os, sys, warnings
import numpy as np, onnx, onnxruntime as ort, torch
from common import *
warnings.filterwarnings("ignore")
md, fd, om, od = sys.argv[1:5]
os.makedirs(om, exist_ok=True); os.makedirs(od, exist_ok=True)
# name -> list of (suffix, opset, dynamic batch, torch.export-based exporter, fold BatchNorm)
PLAN = {
    "logreg": [("", 13, False, False, True)],
    "mlp": [("", 13, True, False, True)],
    "cryptonet_small": [("", 13, False, False, True)],
    "lenet5_small": [("", 13, False, False, True), ("_dyn", 18, True, True, True)],
    "lenet5_large": [("", 13, False, False, True)],
    "mobilenet_fashion": [("", 13, False, False, True), ("_bn", 17, True, False, False)],
}
mn, fa = load_mnist(), load_fashion(600)
np.savez_compressed(f"{od}/mnist_test.npz", images=mn["test_x"], labels=mn["test_y"])
np.savez_compressed(f"{od}/mnist_calib.npz", images=mn["calib_x"], labels=mn["calib_y"])
np.savez_compressed(f"{od}/fashion_test.npz", images=fa["test_x"][:1000], labels=fa["test_y"][:1000])
np.savez_compressed(f"{od}/fashion_calib.npz", images=fa["calib_x"][:500], labels=fa["calib_y"][:500])
ref, rep = {}, {}
for name, plan in PLAN.items():
    cls, kind, _, _ = NETS[name]
    d = mn if kind == "mnist" else fa
    src = md if kind == "mnist" else fd
    n = 2000 if kind == "mnist" else 1000
    x = to_input(d["test_x"][:n], cls.shape)
    for suf, opset, dyn, dynamo, fold in plan:
        m = cls(); m.load_state_dict(torch.load(f"{src}/{name}.pt")); m.eval()
        if fold: fold_bn(m)
        p = f"{om}/{name}{suf}.onnx"
        kw = dict(opset_version=opset, input_names=["image"], output_names=["logits"])
        if dynamo:
            torch.onnx.export(m, (torch.zeros(2, *cls.shape),), p, dynamo=True, external_data=False, dynamic_shapes={"x": {0: torch.export.Dim("batch")}}, verbose=False, **kw)
        else:
            if not fold: kw.update(training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
            torch.onnx.export(m, (torch.zeros(1, *cls.shape),), p, dynamo=False, dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}} if dyn else None, **kw)
        g = onnx.load(p)                     # the exporter records stack traces, with paths of the machine
        for o in [g, g.graph, *g.graph.node, *g.graph.value_info, *g.graph.input, *g.graph.output, *g.graph.initializer, *g.functions]:
            o.ClearField("metadata_props"); o.ClearField("doc_string")
        onnx.save(g, p)
        onnx.checker.check_model(p, full_check=True)
        so = ort.SessionOptions(); so.intra_op_num_threads = 1
        s = ort.InferenceSession(p, so, providers=["CPUExecutionProvider"])
        xs = x.numpy()
        o = np.concatenate([s.run(None, {"image": xs[i:i + (100 if dyn else 1)]})[0] for i in range(0, n, 100 if dyn else 1)])
        with torch.no_grad(): t = torch.cat([m(x[i:i + 250]) for i in range(0, n, 250)]).numpy()
        rep[name + suf] = dict(macs=sum(macs(m, cls.shape).values()), bytes=os.path.getsize(p), opset=g.opset_import[0].version, dynamic_batch=dyn, ops=sorted({q.op_type for q in g.graph.node}),
                               input=list(cls.shape), dataset=kind, n=n, acc_ort=float((o.argmax(1) == d["test_y"][:n]).mean()), max_diff_torch=float(np.abs(o - t).max()))
        ref[name + suf] = o[:16].astype(np.float32)
        print(name + suf, rep[name + suf], flush=True)
np.savez_compressed(f"{od}/reference_logits.npz", **ref)
json.dump(rep, open(f"{om}/models.json", "w"), indent=1)    # what ../README.md lists
