"""torch's attention for the cases of attn_bench, one JSON line each; called by attn_bench --torch.

Argument: B,H,Hkv,Tq,Tk,D,causal,threads. Uses torch.nn.functional.scaled_dot_product_attention where
this torch has it, else matmul, softmax, matmul.
"""
import json
import statistics
import sys
import time

import torch


def attention(query, key, value, causal):
    fused = getattr(torch.nn.functional, "scaled_dot_product_attention", None)
    if fused is not None:
        return fused(query, key, value, is_causal=causal)
    scores = query @ key.transpose(-2, -1) * query.size(-1) ** -0.5
    if causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(mask, float("-inf"))
    return torch.softmax(scores, -1) @ value


def median_seconds(run):
    run()
    samples = []
    start = time.perf_counter()
    while len(samples) < 3 or time.perf_counter() - start < 2:
        before = time.perf_counter()
        run()
        samples.append(time.perf_counter() - before)
    return statistics.median(samples)


def main():
    batch, heads, kv_heads, tq, tk, dim, causal, threads = map(int, sys.argv[1].split(","))
    torch.set_num_threads(threads)
    query = torch.rand(batch, heads, tq, dim, requires_grad=True)
    key = torch.rand(batch, kv_heads, tk, dim).repeat_interleave(heads // kv_heads, 1)
    value = torch.rand(batch, kv_heads, tk, dim).repeat_interleave(heads // kv_heads, 1)
    key.requires_grad_()
    value.requires_grad_()
    grad = torch.rand(batch, heads, tq, dim)

    def forward():
        with torch.no_grad():
            attention(query, key, value, causal == 1)

    def both():
        attention(query, key, value, causal == 1).backward(grad)

    print(json.dumps({
        "by": "torch " + torch.__version__,
        "forward_s": median_seconds(forward),
        "forward_backward_s": median_seconds(both),
    }))


main()
