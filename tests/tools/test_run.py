"""attn run, oracle and check against numpy in float64."""
import math
import sys

from common import (attn, close, golden, load, main, path, random, read_safetensors, save, softmax,
                    write_safetensors)
import numpy as np


def formula(q, k, v, scale=None, softcap=0, bias=None, hidden=None):
    """The definition; q (B, Hq, Tq, D). Returns output, weights, scores."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, group, axis=1) for x in (k, v))
    scores = (scale or 1 / math.sqrt(q.shape[-1])) * (q @ k.swapaxes(-1, -2))
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    if hidden is not None:
        scores = np.where(hidden, -np.inf, scores)
    weights = softmax(scores)
    return weights @ v, weights, scores


def inputs(heads=2, key_heads=2, rows=6, keys=6, size=8):
    q = random(1, 2, heads, rows, size)
    k = random(2, 2, key_heads, keys, size)
    v = random(3, 2, key_heads, keys, size)
    for name, array in zip('qkv', (q, k, v)):
        save(name + '.npy', array)
    return q, k, v


QKV = ['-q', 'q.npy', '-k', 'k.npy', '-v', 'v.npy']


def future(rows, keys, offset=0):
    return np.arange(keys) > np.arange(rows)[:, None] + offset


def test_plain_and_every_output():
    q, k, v = inputs()
    attn('run', *QKV, '-o', 'o.npy', '--weights', 'w.npy', '--lse', 'lse.npy', '--key-sums',
         's.npy')
    output, weights, scores = formula(q, k, v)
    close(load('o.npy'), output)
    close(load('w.npy'), weights)
    close(load('lse.npy'), np.log(np.exp(scores).sum(-1)))
    close(load('s.npy'), weights.sum(-2))


def test_ranks_stay():
    q, k, v = inputs()
    for rank in (2, 3):
        cut = (0,) * (4 - rank)
        for name, array in zip('qkv', (q, k, v)):
            save(name + '.npy', array[cut])
        attn('run', *QKV, '-o', 'o.npy', '-w', 'w.npy', '--lse', 'lse.npy')
        output, weights, _ = formula(q, k, v)
        close(load('o.npy'), output[cut])
        close(load('w.npy'), weights[cut])
        assert load('lse.npy').shape == q[cut].shape[:-1]


def test_masks():
    q, k, v = inputs(rows=5, keys=7)
    i, j = np.arange(5)[:, None], np.arange(7)
    bias = random(4, 1, 2, 5, 7)
    keep = random(5, 2, 1, 5, 7) > -1
    save('bias.npy', bias)
    save('keep.npy', keep)
    slopes = np.array([0.5, 0.25], 'f4')
    save('slopes.npy', slopes)
    lengths = np.array([4, 7])[:, None, None, None]
    for options, terms in [
            (['--causal'], {'hidden': future(5, 7)}),
            (['--causal', '--diagonal', 'bottom-right'], {'hidden': future(5, 7, 2)}),
            (['--causal', '--diagonal-offset', '1'], {'hidden': future(5, 7, 1)}),
            (['--window', '1,2'], {'hidden': (j < i - 1) | (j > i + 2)}),
            (['--window', '-1,0'], {'hidden': future(5, 7)}),
            (['--scale', '0.3'], {'scale': 0.3}),
            (['--softcap', '0.5'], {'softcap': 0.5}),
            (['--bias', 'bias.npy'], {'bias': bias}),
            (['--keep', 'keep.npy'], {'hidden': ~keep}),
            (['--alibi', 'slopes.npy'], {'bias': slopes[:, None, None] * (j - i)}),
            (['--alibi', 'auto'], {'bias': np.array([2.0**-4, 2.0**-8])[:, None, None] * (j - i)}),
            (['--key-lengths', '4,7'], {'hidden': j >= lengths})]:
        attn('run', *QKV, *options, '-o', 'o.npy', '-w', 'w.npy')
        output, weights, _ = formula(q, k, v, **terms)
        close(load('o.npy'), output)
        close(load('w.npy'), weights)


def test_grouped_heads_sinks_and_chosen_weights():
    q, k, v = inputs(heads=4, key_heads=2)
    attn('run', *QKV, '-c', '-o', 'o.npy', '-w', 'w.npy', '--weight-heads', '3,1',
         '--weight-rows', '5')
    output, weights, _ = formula(q, k, v, hidden=future(6, 6))
    close(load('o.npy'), output)
    close(load('w.npy'), weights[:, [3, 1]][:, :, [5]])
    sinks = np.array([0.5, -1, 2, 0], 'f4')
    save('sinks.npy', sinks)
    attn('run', *QKV, '--sinks', 'sinks.npy', '-w', 'w.npy')
    _, _, scores = formula(q, k, v)
    total = np.exp(scores).sum(-1, keepdims=True) + np.exp(sinks)[:, None, None]
    close(load('w.npy'), np.exp(scores) / total)


def test_packed_sequences():
    q, k, v = (random(seed, 1, 1, 7, 4) for seed in (1, 2, 3))
    for name, array in zip('qkv', (q, k, v)):
        save(name + '.npy', array)
    save('starts.npy', np.array([0, 3, 7]))
    attn('run', *QKV, '--query-starts', 'starts.npy', '--key-starts', '0,3,7', '-o', 'o.npy')
    for part in (slice(0, 3), slice(3, 7)):
        output, _, _ = formula(q[:, :, part], k[:, :, part], v[:, :, part])
        close(load('o.npy')[:, :, part], output)


def test_dropout_is_addressed_by_position():
    inputs(rows=64, keys=64)
    options = ['--dropout', '0.25', '--dropout-seed', '7']
    attn('run', *QKV, *options, '-w', 'all.npy', '--weights-dropped')
    attn('run', *QKV, '-w', 'plain.npy')
    kept = load('all.npy') != 0
    assert 0.70 < kept.mean() < 0.80
    close(load('all.npy'), np.where(kept, load('plain.npy') / 0.75, 0).astype('f8'))
    # The last rows alone, told where they stand, drop the same weights.
    save('q.npy', load('q.npy')[:, :, 40:])
    attn('run', *QKV, *options, '--dropout-row', '40', '-w', 'some.npy', '--weights-dropped')
    assert np.array_equal(load('some.npy'), load('all.npy')[:, :, 40:])
    attn('run', *QKV, *options, '--dropout-seed', '8', '-w', 'other.npy', '--weights-dropped')
    assert not np.array_equal(load('other.npy') != 0, kept[:, :, 40:])
    attn('run', *QKV, '--dropout', '0.25', '--trace', 'trace')
    assert (load('trace/weights.dropped.npy') == 0).any()
    assert (load('trace/weights.npy') > 0).all()


def test_trace_has_every_intermediate():
    q, k, v = inputs()
    attn('run', *QKV, '--trace', 'trace')
    output, weights, scores = formula(q, k, v)
    close(load('trace/output.npy'), output)
    close(load('trace/weights.npy'), weights)
    close(load('trace/row_max.npy'), scores.max(-1))
    close(load('trace/row_sum.npy'), np.exp(scores - scores.max(-1, keepdims=True)).sum(-1), 1e-5)


def test_same_bits_for_every_thread_count_and_tier():
    inputs(rows=70, keys=70)
    results = set()
    for options in (['--threads', '1'], ['--threads', '3'], ['--tier', 'portable']):
        attn('run', *QKV, '-c', '-o', 'o.npy', *options)
        with open(path('o.npy'), 'rb') as file:
            results.add(file.read())
    assert len(results) == 1


def test_oracle_forward_and_gradients():
    q, k, v = inputs(heads=4, key_heads=2)
    save('g.npy', random(9, *q.shape))
    attn('oracle', *QKV, '-c', '-g', 'g.npy', '-w', '-o', 'o.safetensors')
    results, _ = read_safetensors('o.safetensors')
    output, weights, _ = formula(q, k, v, hidden=future(6, 6))
    close(results['output'], output, 1e-13)
    close(results['weights'], weights, 1e-13)
    # Gradients by central differences of the formula.
    gradient = load('g.npy').astype(np.float64)
    rng = np.random.default_rng(5)
    for name, array in (('grad_query', q), ('grad_key', k), ('grad_value', v)):
        for _ in range(12):
            at = tuple(rng.integers(0, n) for n in array.shape)
            sides = []
            for step in (1e-5, -1e-5):
                moved = [x.astype(np.float64) for x in (q, k, v)]
                moved[('grad_query', 'grad_key', 'grad_value').index(name)][at] += step
                sides.append((formula(*moved, hidden=future(6, 6))[0] * gradient).sum())
            numeric = (sides[0] - sides[1]) / 2e-5
            assert abs(results[name][at] - numeric) < 1e-8, (name, at)
    attn('oracle', *QKV, '-c', '-o', 'oracle/')
    assert np.array_equal(load('oracle/output.npy'), results['output'])


# ---- layers of models ---------------------------------------------------------------------------

def test_golden_modules():
    for name in ('v1_6x3x2_seed123', 'v2_6x3x2_seed789', 'causal_2x6x3x2_seed123',
                 'wrapper_2x6x3_2h_seed123', 'mha_2x6x3x2_2h_seed123', 'mha_2x9x12x12_4h',
                 'mha_3x7x5x6_3h_bias_ctx10'):
        extra = []
        if name.startswith('causal'):
            # Without its mask a saved CausalAttention looks like SelfAttentionV2.
            tensors, _ = read_safetensors(golden(name))
            length = tensors['x'].shape[1]
            tensors['mask'] = np.triu(np.ones((length, length), 'f4'), 1)
            model = write_safetensors('model.safetensors', tensors)
        else:
            model = golden(name)
        attn('run', '--model', model, '--input', golden(name) + ':x', '-o', 'o.npy', *extra)
        tensors, _ = read_safetensors(golden(name))
        close(load('o.npy'), tensors['out.f64'].astype('f8'), 1e-6)


def test_golden_module_trace():
    name = golden('mha_2x6x3x2_2h_seed123')
    attn('run', '-m', name, '-i', name + ':x', '--trace', 'mha', '-w', 'w.npy')
    tensors, _ = read_safetensors(name)
    close(load('mha/attn_weights.npy'), tensors['attn_weights.f64'], 1e-6)
    close(load('w.npy'), tensors['attn_weights.f64'], 1e-6)
    close(load('mha/output.npy'), tensors['out.f64'], 1e-6)
    close(load('mha/context.merged.npy'), tensors['context_before_out_proj.f64'], 1e-6)


def rotate(x, style, base, position):
    """Rotary positions on (B, H, T, D) in float64 (Su et al., 2021)."""
    half = x.shape[-1] // 2
    angle = (np.arange(x.shape[-2])[:, None] + position) * base ** (-np.arange(half) / half)
    cos, sin = np.cos(angle), np.sin(angle)
    first, second = (x[..., :half], x[..., half:]) if style == 'half-split' \
        else (x[..., 0::2], x[..., 1::2])
    a, b = first * cos - second * sin, second * cos + first * sin
    if style == 'half-split':
        return np.concatenate([a, b], -1)
    return np.stack([a, b], -1).reshape(x.shape)


def llama(tensors, x, heads, key_heads, style, base, position, norm):
    p = {name.rsplit('self_attn.')[1]: array.astype('f8') for name, array in tensors.items()}
    x = x.astype('f8')

    def project(name, count):
        y = x @ p[name + '.weight'].T + p.get(name + '.bias', 0)
        return y.reshape(*x.shape[:2], count, -1).swapaxes(1, 2)

    q, k, v = project('q_proj', heads), project('k_proj', key_heads), project('v_proj', key_heads)
    if norm:
        q, k = (y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-6) * p[w]
                for y, w in ((q, 'q_norm.weight'), (k, 'k_norm.weight')))
    q, k = (rotate(y, style, base, position) for y in (q, k))
    length = x.shape[1]
    out, _, _ = formula(q, k, v, hidden=future(length, length))
    out = out.swapaxes(1, 2).reshape(*x.shape[:2], -1)
    return out @ p['o_proj.weight'].T


def llama_layer(bias, norm):
    shapes = {'q_proj.weight': (24, 10), 'k_proj.weight': (12, 10), 'v_proj.weight': (12, 10),
              'o_proj.weight': (10, 24)}
    if bias:
        shapes.update({'q_proj.bias': (24,), 'k_proj.bias': (12,), 'v_proj.bias': (12,)})
    if norm:
        shapes.update({'q_norm.weight': (6,), 'k_norm.weight': (6,)})
    return {'model.layers.3.self_attn.' + name: random(i, *shape) * np.float32(0.5)
            for i, (name, shape) in enumerate(shapes.items())}


def test_llama_and_qwen_layers():
    x = random(30, 2, 5, 10)
    save('x.npy', x)
    for bias, norm in ((False, False), (True, False), (False, True)):
        tensors = llama_layer(bias, norm)
        write_safetensors('llama.safetensors', tensors)
        for style in ('half-split', 'interleaved'):
            for base, position in ((10000, 0), (500000, 17)):
                attn('run', '-m', 'llama.safetensors', '--layer', '3', '--heads', '4', '-i',
                     'x.npy', '--rotary', style, '--rotary-base', str(base), '--position',
                     str(position), '-o', 'o.npy', '--dtype', 'float64')
                expected = llama(tensors, x, 4, 2, style, base, position, norm)
                close(load('o.npy'), expected, 1e-12)


def test_config_beside_the_model_is_read():
    tensors = llama_layer(False, False)
    save('x.npy', random(30, 1, 5, 10))
    write_safetensors('llama.safetensors', tensors)
    with open(path('config.json'), 'w', encoding='utf-8') as file:
        file.write('{"num_attention_heads": 4, "rope_theta": 500000.0, "rms_norm_eps": 1e-05}')
    attn('run', '-m', 'llama.safetensors', '-i', 'x.npy', '-o', 'o.npy', '--dtype', 'float64')
    expected = llama(tensors, load('x.npy'), 4, 2, 'half-split', 500000, 0, False)
    close(load('o.npy'), expected, 1e-12)


if __name__ == '__main__':
    main(sys.modules['__main__'])
