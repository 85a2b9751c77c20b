// text_en.c: the English text.
#include "text.h"

const char *const text_en[TEXT_COUNT] = {
    // ---- the whole program
    [T_CLAIM_HOLDS] = "[ok]",
    [T_CLAIM_BROKEN] = "[FAILED]",
    [T_SAME_BY_LIBRARY] = "The same from the library.",
    [T_STEPS_EQUAL_MODULE] = "the steps give what the library's module gives (to 1e-6)",
    [T_HEAT_SCALE] = "rows: query, columns: key; 0 \" .:-=+*#@\" 1",
    [T_CHAPTER_TITLE] = "Chapter 3: attention, from dot products to the module inside GPT-2",
    [T_CHAPTER_INTRO] =
        "One sentence of six tokens goes through nine sections. Each section adds one\n"
        "thing to the one before, shows the shape of everything it makes, and then asks\n"
        "the library for the same result. Lines that begin with [ok] are statements that\n"
        "the program has just checked. Numbers are float32; with the seeds named here,\n"
        "torch prints the same digits.\n"
        "\n"
        "The program's section numbers follow its demos; the chapter's text counts\n"
        "differently (3.3.x here is 3.2 there, 3.4.x is 3.3, 3.5.x is 3.4, 3.6.x is 3.5).\n"
        "docs/chapter03.en.md is the chapter to read beside this output.",
    [T_CHAPTER_END] =
        "That is the chapter. Go on with\n"
        "  --exercise 1..4   the exercises, solved by running them\n"
        "  --pitfall 1..3    the three slips of a multi-head attention, symptom first\n"
        "  --saturation      why scores are divided by sqrt(d_k)\n"
        "  --history         from one fixed vector to attention\n"
        "  --train           watch attention learn where to look\n"
        "  --selftest        ten questions, with evidence, then the answers\n"
        "  --help            everything else",
    // ---- options
    [T_HELP] = "Usage: chapter03_attention [OPTION]...\n"
               "The attention chapter, computed in C. Without options: all sections, in order.\n"
               "\n"
               "What to show (one of these):\n"
               "  --section NUMBER     one section, such as 3.5.1, or a group, such as 3.5\n"
               "  --exercise N         exercise 1 to 4\n"
               "  --pitfall N          pitfall 1 to 3: the symptom, then the right version\n"
               "  --saturation         raw and scaled scores for d_k = 8, 64, 512, and training\n"
               "  --history            fixed vector, additive attention, self and cross\n"
               "  --selftest           ten questions; a key press shows each answer\n"
               "    --answers          with --selftest: show the answers at once\n"
               "  --glossary           the chapter's terms\n"
               "  --trace[=MODULE]     every intermediate with shape and strides; MODULE is v1,\n"
               "                       v2, causal, wrapper or mha (default)\n"
               "  --train              two heads learn to copy from two places, one cannot\n"
               "    --no-mask          with --train: how a missing mask leaks the answer\n"
               "    --steps N          with --train: stop after N steps\n"
               "    --checkpoint FILE  with --train: where Ctrl-C saves the state\n"
               "                       (default: chapter03_attention.checkpoint)\n"
               "    --resume           with --train: go on from the saved state\n"
               "  --figures DIR        the chapter's three figures as PNG and SVG\n"
               "\n"
               "Other options:\n"
               "  --lang en|zh         language (default: from LC_ALL, LC_MESSAGES or LANG)\n"
               "  --time               also measure times, which differ from run to run\n"
               "  -h, --help           this text\n"
               "\n"
               "Exit status: 0 success, 1 a failure or a statement that did not hold, 2 a wrong\n"
               "option, 130 stopped by Ctrl-C during training.\n"
               "Example: chapter03_attention --section 3.5.1 --lang zh",
    [T_OPT_TRY_HELP] = "Try 'chapter03_attention --help'.",
    [T_OPT_LANG] = "--lang: no such language '%s' (en or zh)%s",
    [T_OPT_TWO_ACTIONS] = "choose one: %s or %s",
    [T_OPT_EXERCISE] = "--exercise: '%s' is not a number from 1 to 4%s",
    [T_OPT_PITFALL] = "--pitfall: '%s' is not a number from 1 to 3%s",
    [T_OPT_STEPS] = "--steps: '%s' is not a number from 1 to 1000000%s",
    [T_OPT_NEEDS] = "%s is only used together with %s",
    [T_OPT_MISSING_ARGUMENT] = "option '%s' needs an argument%s",
    [T_OPT_UNKNOWN] = "option not understood: '%s'%s",
    [T_OPT_EXTRA] = "argument not understood: '%s'%s",
    [T_OPT_SECTION] =
        "--section: there is no section '%s' (3.3.1, 3.3.2, 3.4.1, 3.4.2, 3.5.1, 3.5.2, 3.5.3, 3.6.1, 3.6.2)",
    [T_OPT_TRACE] = "--trace: there is no module '%s' (v1, v2, causal, wrapper, mha)",
    // ---- 3.3.1
    [T_331_TITLE] = "Simple self-attention: one query, by hand",
    [T_331_INTRO] =
        "The sentence \"Your journey starts with one step.\" is six tokens, and each token\n"
        "is a vector of three numbers (its embedding). For one token, journey, we build a\n"
        "new vector that knows the whole sentence. Nothing is trained yet: every number\n"
        "follows from these eighteen.",
    [T_331_STEP_SCORES] =
        "Step 1. Scores: how much does each token have to do with journey (x_2)?\n"
        "The measure is the dot product: multiply number by number, add up.",
    [T_331_CORRECTION] =
        "  The printed chapter gives 0.8438 for the fourth score. The three products\n"
        "  above add up to 0.8434, and torch says so too; the other digits agree.",
    [T_331_WHY_DOT] = "Why a dot product? Take vectors of length 1:",
    [T_331_SAME] = "same direction",
    [T_331_SIXTY_DEGREES] = "60 degrees apart",
    [T_331_ORTHOGONAL] = "at right angles",
    [T_331_OPPOSITE] = "opposite",
    [T_331_WHY_DOT_MEANING] =
        "  It measures how far two directions agree: 1 when they are one, 0 when they\n"
        "  have nothing in common, -1 when they are opposed. Embeddings put words of\n"
        "  similar meaning in similar directions, so this number stands for similarity of\n"
        "  meaning, and it has a derivative, so it can be learned from.",
    [T_331_STEP_WEIGHTS] =
        "Step 2. Weights: turn scores into shares that add up to 1.\n"
        "Three ways: s / sum(s); exp(s) / sum(exp(s)); and the softmax that is really\n"
        "used, the same after subtracting the largest score. On friendly numbers such as\n"
        "these the last two agree.",
    [T_331_WHY_NOT_SUM] = "Why not simply divide by the sum? Because scores may be negative:",
    [T_331_WHY_NOT_SUM_MEANING] =
        "  The sum is -0.5, so the best score gets a share of -2 and the worst gets 4.\n"
        "  The exponential in a softmax is always positive: no share can be negative, the\n"
        "  order is kept, and the derivative stays friendly for training.",
    [T_331_WHY_NOT_NAIVE] = "Why not the formula as it stands, exp(s) / sum of exp(s)?",
    [T_331_NAIVE_IS_NAN] =
        "exp(1000) is infinity in float32, and infinity / infinity is not a number",
    [T_331_WHY_NOT_NAIVE_MEANING] =
        "  Subtracting the largest score from all of them first leaves every quotient as\n"
        "  it is (the factor exp(-max) cancels) and keeps each exponent at or below 0.",
    [T_331_STEP_CONTEXT] = "Step 3. Context: mix all six vectors in these shares.\n"
                           "context_vec_2 = sum over j of attn_weights_2[j] * x_j",
    [T_331_CONTEXT_MEANING] =
        "  journey takes most from itself (0.2379) and from starts (0.2333), whose vector\n"
        "  is almost the same; it takes least from one (0.1082).",
    [T_331_LIBRARY_SOFTMAX] = "attn_softmax gives the same weights (to 1e-6)",
    [T_331_SUMMARY] = "\n"
                      "In one sentence: score by dot product, share out by softmax, mix.",
    // ---- 3.3.2
    [T_332_TITLE] = "Simple self-attention: all queries at once",
    [T_332_INTRO] =
        "What was done for journey, now for every token. The loops over queries and keys\n"
        "are one matrix product, and so is the mixing. These three lines of code return\n"
        "in every section that follows.",
    [T_332_STEP_SCORES] = "attn_scores = inputs @ inputs.T: every token with every token",
    [T_332_LOOPS_EQUAL] = "two loops over i and j give the same numbers (to 1e-6)",
    [T_332_SYMMETRIC] = "the matrix is symmetric: x_i . x_j = x_j . x_i",
    [T_332_STEP_WEIGHTS] = "attn_weights = softmax(attn_scores, dim=-1): each row shares out 1",
    [T_332_WEIGHTS_MEANING] =
        "  A row belongs to a query, a column to a key: row journey says how much journey\n"
        "  takes from each token. The weights are no longer symmetric, since every row\n"
        "  was divided by its own sum.",
    [T_332_STEP_CONTEXT] = "all_context_vecs = attn_weights @ inputs",
    [T_332_CONTEXT_MEANING] = "  Row journey is the context_vec_2 of section 3.3.1.",
    [T_332_WRONG_AXIS] = "The commonest slip: softmax over the wrong axis, dim=0",
    [T_332_WRONG_AXIS_MEANING] =
        "  No error, the right shape, plausible numbers; but now the columns add up to 1\n"
        "  and the rows do not. A query must share out its own attention: dim=-1.",
    [T_332_LIBRARY] = "attn_scaled_dot_product_attention with scale 1 agrees (to 1e-6)",
    [T_332_SUMMARY] =
        "\n"
        "In one sentence: two matrix products with a softmax of the rows between them.",
    // ---- 3.4.1
    [T_341_TITLE] = "Query, key and value: attention that can learn",
    [T_341_INTRO] =
        "So far the embeddings alone decide who attends to whom: nothing can be learned.\n"
        "Now three matrices give every token three roles, as in a library:\n"
        "  query  what this token is looking for        (the words you search with)\n"
        "  key    what this token can be found under    (the entry in the index)\n"
        "  value  what this token hands over if found   (the page you get to read)",
    [T_341_STEP_PARAMETERS] = "Step 1. Three parameter matrices, torch.rand(3, 2) each, seed 123",
    [T_341_STEP_PROJECT] =
        "Step 2. The three roles of journey: x_2 @ W_query, x_2 @ W_key, x_2 @ W_value",
    [T_341_ROLES] = "  Three numbers went in, two come out: d_in = 3, d_out = 2.",
    [T_341_STEP_ALL_KEYS] =
        "Step 3. One query still needs every key and every value\n"
        "journey has to be compared with all six tokens, and may take from all six.",
    [T_341_STEP_SCORES] = "Step 4. Scores: query_2 . key_j",
    [T_341_STEP_WEIGHTS] = "Step 5. Weights: softmax(attn_scores_2 / sqrt(d_k)), d_k = 2",
    [T_341_SCALE_MEANING] =
        "  A dot product of d_k terms grows like sqrt(d_k). Undivided, large scores would\n"
        "  push the softmax towards a step: one weight near 1, the rest near 0, and\n"
        "  almost no gradient to learn from. --saturation shows it for d_k = 8, 64 and\n"
        "  512.",
    [T_341_STEP_CONTEXT] = "Step 6. Context: attn_weights_2 @ values",
    [T_341_LIBRARY] = "row journey of SelfAttentionV1, seed 123, is this vector (to 1e-6)",
    [T_341_SUMMARY] =
        "\n"
        "In one sentence: learned matrices decide what is compared and what is passed on.",
    // ---- 3.4.2
    [T_342_TITLE] = "SelfAttentionV1 and SelfAttentionV2",
    [T_342_INTRO] = "The steps of 3.4.1, for all six tokens at once and packed into a module. The\n"
                    "module runs, and the same steps are written out with its parameters.",
    [T_342_STEP_V1] = "SelfAttentionV1(3, 2), seed 123: bare matrices, x @ W",
    [T_342_STEP_V2] = "SelfAttentionV2(3, 2), seed 789: Linear layers, x @ W.T",
    [T_342_WHY_DIFFERENT] =
        "  The same formula, other numbers, for two reasons: another start (Linear draws\n"
        "  from a range around zero, +-1/sqrt(d_in), where torch.rand draws from [0, 1)),\n"
        "  and another layout (Linear stores its weight as (d_out, d_in)).",
    [T_342_EXERCISE] = "[exercise 3.1] Give V1 the weights of V2, transposed",
    [T_342_BIT_IDENTICAL] = "bit for bit what sa_v2 gave: the two are one formula",
    [T_342_TWO_WEIGHTS] = "One word, two things: weight parameters and attention weights",
    [T_342_CHANGED_INPUT] =
        "  The last token, step, is replaced by [0.90, 0.10, 0.20]; the module is\n"
        "  untouched.",
    [T_342_ATTENTION_MOVED] = "the attention weights changed with the input",
    [T_342_PARAMETERS_STAYED] = "the weight parameters (W_query.weight) did not",
    [T_342_TWO_WEIGHTS_TABLE] =
        "                     weight parameters           attention weights\n"
        "  what               W_query, W_key, W_value     rows that add up to 1\n"
        "  come from          training                    each forward pass\n"
        "  after training     fixed                       new for every input\n"
        "  decide             how inputs are transformed  how much of each token is taken",
    [T_342_SUMMARY] =
        "\n"
        "In one sentence: V2 is V1 with a better start and a tidier home for its weights.",
    // ---- 3.5.1
    [T_351_TITLE] = "The causal mask: no looking ahead",
    [T_351_INTRO] =
        "A language model predicts the next token from those before it. At position i the\n"
        "later tokens are the answer, so position i may attend to positions 1..i only.\n"
        "The scores below are those of SelfAttentionV2, seed 789.",
    [T_351_WAY_A] =
        "Way A. Softmax first, then clear what lies above the diagonal, then renormalise\n"
        "tril keeps the lower triangle, diagonal included.",
    [T_351_WAY_B] =
        "Way B. Put -inf above the diagonal, then one softmax\n"
        "triu(ones, diagonal=1) marks what must go; exp(-inf) is 0, so rows add up to 1.",
    [T_351_WAYS_EQUAL] = "both ways give the same weights (to 1e-6)",
    [T_351_UPPER_ZERO] = "everything above the diagonal is exactly 0",
    [T_351_SCALE_ORDER] = "masking before or after the division by sqrt(d_k): the same bits",
    [T_351_CORRECTION] =
        "  The chapter prints other weights here (row 2: 0.5597 0.4403, row 4: 0.4077\n"
        "  0.4516 0.0802 0.0605). No parameters can make those from this sentence:\n"
        "  journey and starts differ by 0.02 in each number, so every row must weigh them\n"
        "  nearly alike, yet that row 4 gives journey 5.6 times the share of starts. The\n"
        "  true values are those above: 1 / 0.5517 0.4483 / 0.3800 0.3097 0.3103 / ...",
    [T_351_WRONG_DIAGONAL] = "The mistake to make once: triu with diagonal=0",
    [T_351_WRONG_DIAGONAL_MEANING] =
        "  Now the diagonal is masked too: no token sees itself, and the first one sees\n"
        "  nothing at all. A softmax of nothing has no right answer.",
    [T_351_NO_LEAK] = "Does the future leak? Replace the last token and watch the rows before it",
    [T_351_A_ROUNDING] = "way A: earlier rows agree up to rounding (to 1e-6)",
    [T_351_B_BITS] = "way B: earlier rows keep every bit",
    [T_351_HUGE] = "  Now a last token that is huge, [4000, 0, 0]:",
    [T_351_A_BREAKS] = "way A breaks: all shares went to the future, what is left is 0 / 0",
    [T_351_B_HOLDS] = "way B does not notice: earlier rows still keep every bit",
    [T_351_NO_LEAK_MEANING] =
        "  On paper the two are equal and neither leaks: dividing what is left by its sum\n"
        "  is a softmax over what is left, since the common denominator cancels. In\n"
        "  floating point, way A still computes with the future before it forgets it; way\n"
        "  B never does. Use way B.",
    [T_351_TARGETS] = "What the mask buys: one forward pass, a prediction at every position",
    [T_351_TARGETS_MEANING] =
        "  A sequence of L tokens gives L next-token targets in one pass (the last target\n"
        "  is the token after the window). Row 1 gives all its attention to itself: it\n"
        "  has nothing else to see.",
    [T_351_SUMMARY] =
        "\n"
        "In one sentence: -inf before the softmax, and the future has weight exactly 0.",
    // ---- 3.5.2
    [T_352_TITLE] = "Dropout on the attention weights",
    [T_352_INTRO] =
        "In training, dropout sets each weight to 0 with probability p, so that the model\n"
        "does not come to rely on single positions. What survives is multiplied by\n"
        "1 / (1 - p), so that the expected value stays what it was.",
    [T_352_STEP_ONES] = "dropout(ones(6, 6)), p = 0.5, seed 123",
    [T_352_TWO] = "every survivor is 2.0 = 1 / (1 - 0.5)",
    [T_352_PLATFORM] =
        "  Which elements survive depends on the random stream. This is torch's CPU\n"
        "  stream; a torch built with MKL, or on another platform, may print another\n"
        "  pattern. The 2.0 is the same everywhere.",
    [T_352_STEP_TEN_PERCENT] =
        "The same with p = 0.1 (at p = 0.5, 1 / p and 1 / (1 - p) cannot be told apart)",
    [T_352_ONE_OVER_KEEP] = "every survivor is 1.1111 = 1 / (1 - 0.1), not 1 / 0.1 = 10",
    [T_352_STEP_WEIGHTS] = "dropout(attn_weights_inf), p = 0.5, seed 123: after the softmax",
    [T_352_WEIGHTS_MEANING] =
        "  Rows no longer add up to 1, only on average over many draws. A row may even\n"
        "  lose everything (row journey here). Real models train with p = 0.1 or 0.2.",
    [T_352_STEP_EVAL] = "After eval(): dropout does nothing",
    [T_352_EVAL_SAME] = "the weights come out with the same bits",
    [T_352_EVAL_DRAWS_NOTHING] = "and no random number was drawn",
    [T_352_STEP_MEAN] = "The mean of dropout(ones(6, 6)) over %d draws",
    [T_352_MEAN_ONE] = "both within 0.01 of 1: the factor 1 / (1 - p) keeps the mean",
    [T_352_SUMMARY] =
        "\n"
        "In one sentence: drop some weights in training, scale up the rest, rest in eval.",
    // ---- 3.5.3
    [T_353_TITLE] = "CausalAttention: mask, dropout and batches in one module",
    [T_353_INTRO] = "The sentence twice makes a batch of shape (2, 6, 3). CausalAttention(d_in=3,\n"
                    "d_out=2, context_length=6, dropout=0.0), seed 123.",
    [T_353_STEP_SHAPES] = "The steps and their shapes\n"
                          "With a batch dimension in front, keys.T becomes keys.transpose(1, 2).",
    [T_353_STEP_MODULE] = "The module's output",
    [T_353_BATCH_ENTRIES] =
        "both sentences give the same bits: batch entries do not see each other",
    [T_353_BUFFER] = "What the module holds: three parameters, and a buffer",
    [T_353_BUFFER_MEANING] =
        "  The mask is a buffer: it belongs to the module and is saved with it, but it is\n"
        "  a constant; no gradient, no training. (This library makes it only when asked\n"
        "  for.)",
    [T_353_LENGTHS] =
        "Shorter sequences use the top left corner of the mask; longer ones are refused",
    [T_353_SHORT_SAME] = "4 tokens: the same bits as the first 4 rows of 6",
    [T_353_TOO_LONG] = "7 tokens: %s",
    [T_353_NAN] = "A hard test of causality: the last token is NaN\n"
                  "Multiplying by a weight of 0 would not help: 0 * NaN is NaN.",
    [T_353_NAN_SAME] = "rows 1 to 5 keep every bit: what is masked is never read",
    [T_353_SUMMARY] =
        "\n"
        "In one sentence: self-attention that is ready for training a language model.",
    // ---- 3.6.1
    [T_361_TITLE] = "MultiHeadAttentionWrapper: several heads side by side",
    [T_361_INTRO] =
        "One set of projections gives one pattern of attention per token. Several sets,\n"
        "heads, can follow several relations at once. The simplest way: run complete\n"
        "causal attentions side by side and join their outputs. Seed 123, d_out = 2, two\n"
        "heads.",
    [T_361_STEP_HEADS] = "Each head alone (first sentence of the batch)",
    [T_361_HEAD_0] =
        "  Head 0 is the module of section 3.5.3: the same seed, so the same first draws.\n"
        "  Head 1 took the next ones.",
    [T_361_STEP_CAT] = "Joined along the last dimension: cat([head 0, head 1], dim=-1)",
    [T_361_HEADS_EQUAL] = "the wrapper is its heads, joined (to 1e-6)",
    [T_361_SHAPE] = "(2, 6, 4): two heads with d_out = 2 columns each",
    [T_361_EXERCISE] = "[exercise 3.2] Two heads, but only two columns: d_out = 1",
    [T_361_EXERCISE_MEANING] = "  Columns = heads * d_out = 2 * 1 = 2, so the shape is (2, 6, 2).",
    [T_361_SUMMARY] =
        "\n"
        "In one sentence: more heads, more points of view, and each projects for itself.",
    // ---- 3.6.2
    [T_362_TITLE] = "MultiHeadAttention: one projection, split into heads",
    [T_362_INTRO] =
        "The wrapper multiplies by 3 * H small matrices. GPT-2 multiplies by 3 large ones\n"
        "and cuts the result into H heads. What makes this work is one product for all\n"
        "heads.",
    [T_362_STEP_BATCHED] =
        "Batched products: the last two dimensions are multiplied, the others are a batch",
    [T_362_BATCHED_EQUAL] = "one product per head, done separately, gives the same (to 1e-6)",
    [T_362_STEP_PARAMETERS] =
        "MultiHeadAttention(3, 2, context_length=6, dropout=0.0, num_heads=2), seed 123",
    [T_362_STEP_CHAIN] = "The chain of shapes: split, attend, merge, mix",
    [T_362_CHAIN_HEADER] = "  b = 2 sentences, T = 6 tokens, H = 2 heads, head_dim = d_out / H = 1",
    [T_362_STEP_MODULE] = "The module's output",
    [T_362_STEP_COMPARE] = "Wrapper against split",
    [T_362_COMPARE_TABLE] =
        "                           wrapper               split (GPT-2)\n"
        "  d_out means              width of each head    width of all heads together\n"
        "  d_out = 2, H = 2 gives   (2, 6, 4)             (2, 6, 2)\n"
        "  projections              3 * H small products  3 large products\n"
        "  keys of one head         d_out numbers         head_dim = d_out / H numbers\n"
        "  scores divided by        sqrt(d_out)           sqrt(head_dim)\n"
        "  heads are mixed by       nothing               out_proj, (d_out, d_out) + bias",
    [T_362_TIMES_OFF] = "  (Times differ from run to run; --time measures them.)",
    [T_362_TIMES] = "  %d heads, %d tokens, width %d: wrapper %.2f ms, split %.2f ms per forward",
    [T_362_EXERCISE] =
        "[exercise 3.3] GPT-2 small: 768 numbers, 12 heads of 64, context_length 1024\n"
        "Seed 123; the input is randn(2, 8, 768) from the same stream.",
    [T_362_PARAMETERS] = "5 parameter tensors, 4 * 768 * 768 + 768 = 2360064 numbers",
    [T_362_SAME_SHAPE] = "(2, 8, 768) in, (2, 8, 768) out: such blocks can be stacked",
    [T_362_GPT2_SIZES] =
        "  GPT-2 small (117 million parameters):  768 = 12 heads * 64, sqrt(64) = 8\n"
        "  GPT-2 XL    (1.5 billion parameters): 1600 = 25 heads * 64, sqrt(64) = 8",
    [T_362_SUMMARY] =
        "\n"
        "In one sentence: project once, split, attend in every head at once, merge, mix.",
    // ---- exercises
    [T_EX1_TITLE] = "Exercise 1: 12, 8 and 16 heads",
    [T_EX1_INTRO] =
        "The GPT-2 demo of section 3.6.2 with other numbers of heads. head_dim = 768 / H\n"
        "changes, the shape and the parameters do not. Does the output?",
    [T_EX1_HEADS] = "%d heads: head_dim = %d",
    [T_EX1_RESULT] = "Compared with 12 heads",
    [T_EX1_FIRST_SAME] = "%d heads: the first token's output is the same (to 1e-6)",
    [T_EX1_LAST_DIFFERS] = "%d heads: the last token's output is different",
    [T_EX1_SAME_COUNT] = "%d heads: as many parameters",
    [T_EX1_MEANING] =
        "\n"
        "The first token sees only itself: its weight is 1 in every head, so cutting the\n"
        "values into 8, 12 or 16 heads changes nothing. To see the number of heads at\n"
        "work, look at a token that has something to choose from: the last one.",
    [T_EX2_TITLE] = "Exercise 2: dropout 0.5, then eval()",
    [T_EX2_INTRO] =
        "CausalAttention of section 3.5.3, seed 123, with dropout = 0.5. The masks come\n"
        "from the stream that made the parameters.",
    [T_EX2_TRAIN] = "In training",
    [T_EX2_ENTRIES_DIFFER] = "the two equal sentences now differ: every weight is drawn for itself",
    [T_EX2_AGAIN_DIFFERS] = "a second forward gives other numbers again",
    [T_EX2_EVAL] = "After eval()",
    [T_EX2_EVAL_REPEATS] = "two forwards give the same bits",
    [T_EX2_EVAL_IS_P0] = "and they are those of a module with dropout = 0.0",
    [T_EX2_MEANING] =
        "\n"
        "Each surviving weight counts double in training, so single outputs jump about;\n"
        "their mean over many forwards is the output of eval(). A zero row (first row of\n"
        "the second sentence) lost its only weight.",
    [T_EX3_TITLE] = "Exercise 3: why d_out = 1 with two heads gives (2, 6, 2)",
    [T_EX3_INTRO] = "In the wrapper d_out is the width of each head's output:\n"
                    "  every head  (2, 6, 3) @ (3, d_out)      ->  (2, 6, d_out)\n"
                    "  cat         num_heads of them, dim=-1   ->  (2, 6, num_heads * d_out)",
    [T_EX3_CASE] = "num_heads = 2, d_out = %d",
    [T_EX3_COLUMNS] = "2 * %d = %d columns",
    [T_EX3_MEANING] =
        "\n"
        "(2, 6, 4) needs d_out = 2. Batch and tokens, 2 and 6, never change: attention\n"
        "makes one new vector for every token.",
    [T_EX4_TITLE] = "Exercise 4: what out_proj does",
    [T_EX4_INTRO] =
        "MultiHeadAttention(3, 2), two heads, seed 123, once as it is and once ending at\n"
        "the merged heads, without out_proj.",
    [T_EX4_WEIGHTS] = "The attention weights (out_proj comes after them: the same in both)",
    [T_EX4_WITHOUT] = "Without out_proj: head 0 is column 0, head 1 is column 1",
    [T_EX4_WITH] = "With out_proj",
    [T_EX4_IS_LINEAR] = "with = without @ out_proj.weight.T + out_proj.bias (to 1e-6)",
    [T_EX4_MIXING] = "Does one head reach the other's column? Double the values of head 1",
    [T_EX4_APART] = "without out_proj, column 0 keeps every bit: the heads never meet",
    [T_EX4_MIXED] = "with out_proj, column 0 changes too: each output mixes both heads",
    [T_EX4_MEANING] =
        "\n"
        "Merging only puts the heads next to each other. out_proj is the one place where\n"
        "the module can learn to combine what they found.",
    // ---- pitfalls
    [T_PIT_SETTING] =
        "MultiHeadAttention(d_in=3, d_out=4, num_heads=2), head_dim = 2, seed 123, on the\n"
        "batch of two sentences.",
    [T_PIT_SYMPTOM] = "The symptom",
    [T_PIT_RIGHT] = "The right version",
    [T_PIT1_TITLE] = "Pitfall 1: dividing by sqrt(d_out) where sqrt(head_dim) belongs",
    [T_PIT1_SYMPTOM] =
        "  No error, right shape, rows that add up to 1. Only: the weights are flatter\n"
        "  than they should be, and a model trained elsewhere gives slightly wrong\n"
        "  answers here.",
    [T_PIT1_DIFFERENT] = "other weights",
    [T_PIT1_LIBRARY] = "the library's weights (to 1e-6)",
    [T_PIT1_GPT2] = "The same in GPT-2's size: d_out = 768, head_dim = 64, 8 keys, seed 123",
    [T_PIT1_MEANING] =
        "\n"
        "A score adds up head_dim products, not d_out: that many random terms have a\n"
        "spread of sqrt(head_dim). In the wrapper every head has d_out numbers, so\n"
        "sqrt(d_out) is right there; after splitting it is sqrt(d_out / H). Writing\n"
        "sqrt(keys.size(-1)), the size that the keys really have, is right in both.",
    [T_PIT2_TITLE] = "Pitfall 2: view after transpose",
    [T_PIT2_REFUSED] = "refused: %s",
    [T_PIT2_WHY] =
        "  transpose only changes how memory is read: the heads of one token are now 12\n"
        "  numbers apart. view needs neighbours in memory to be neighbours in the result.",
    [T_PIT2_WORSE] = "Worse than an error: view without transposing back first",
    [T_PIT2_SCRAMBLED] = "same shape, other numbers: tokens and heads are mixed up",
    [T_PIT2_MEANING] =
        "\n"
        "transpose(1, 2), then contiguous() puts the numbers in the new order, then view.\n"
        "(With head_dim = 1, as in section 3.6.2, view happens to be legal without it: do\n"
        "not take that for proof.)",
    [T_PIT3_TITLE] = "Pitfall 3: out_proj forgotten",
    [T_PIT3_SYMPTOM] = "  The shape is right, the numbers look reasonable, training runs. But:",
    [T_PIT3_GRADIENT_ZERO] = "out_proj gets no gradient, and that gives the slip away",
    [T_PIT3_GRADIENT_FLOWS] = "out_proj has a gradient",
    [T_PIT3_MEANING] =
        "\n"
        "Look for parameters whose gradient stays 0 after a backward: they are not in the\n"
        "computation. Exercise 4 shows in numbers what out_proj adds.",
    // ---- saturation
    [T_SAT_TITLE] = "Why scores are divided by sqrt(d_k)",
    [T_SAT_INTRO] =
        "Queries and keys whose numbers have mean 0 and variance 1 give dot products of\n"
        "mean 0 and variance d_k: a sum of d_k products, each of variance 1. So raw\n"
        "scores spread like sqrt(d_k), and divided scores like 1, whatever d_k is.",
    [T_SAT_SOFTMAX] = "The softmax alone (torch.randn, seed %d; %d queries, %d keys)",
    [T_SAT_SOFTMAX_HEADER] = "                   spread of    largest    entropy       mean\n"
                             "    d_k  scores       scores     weight    in bits     p(1-p)",
    [T_SAT_RAW] = "raw",
    [T_SAT_SCALED] = "scaled",
    [T_SAT_SLOPE_FALLS] = "raw: p(1-p), the softmax's slope, is 5 times smaller at 512 than at 8",
    [T_SAT_SLOPE_STAYS] = "scaled: it stays within 10 %%",
    [T_SAT_SOFTMAX_MEANING] =
        "  Raw scores at d_k = 512 give one key nearly everything (4 bits would be an\n"
        "  even share among 16). p(1-p) is the derivative of a weight with respect to its\n"
        "  own score: where it is near 0, changing the score changes nothing, and there\n"
        "  is nothing to learn from.",
    [T_SAT_LEARNING] =
        "Learning (seed %d, %d steps of AdamW, learning rate 0.003)\n"
        "One head; for every token a fixed rule names its best match among 16 tokens, and\n"
        "the output should be that token. W_query and W_key start so that queries and\n"
        "keys have variance 1. |grad| is the Euclidean norm, of the scores as they enter\n"
        "the softmax and of W_query. A row is silent when its part of the scores'\n"
        "gradient is below 1 %% of the largest row's. The loss is the mean of the last 5\n"
        "steps.",
    [T_SAT_LEARNING_HEADER] =
        "                   |grad| of     silent  |grad| of  |grad| of       loss\n"
        "                      scores       rows    W_query    W_query      up to\n"
        "    d_k  scores       step 1     step 1     step 1    step %2d    step %2d",
    [T_SAT_SCORE_GRADIENT] = "raw: less and less gradient gets through the softmax as d_k grows",
    [T_SAT_SCALED_LEARNS] = "at d_k = 512 the scaled version has learned more after the same steps",
    [T_SAT_LEARNING_MEANING] =
        "  Read the columns with care. What passes through the softmax shrinks, as the\n"
        "  argument says, and more and more rows fall silent: they cannot learn. But the\n"
        "  raw version goes on to multiply by keys that were not divided, sqrt(d_k) times\n"
        "  larger, so the norm of W_query's gradient need not vanish: the few rows that\n"
        "  are not saturated yet shout. Scaled, nearly every row has its say, and the\n"
        "  norm is about the same for every d_k: one learning rate fits all sizes.",
    [T_SAT_SUMMARY] = "\n"
                      "In one sentence: divided by sqrt(d_k), the softmax stays where it can move.",
    // ---- history
    [T_HIS_TITLE] = "From one fixed vector to attention",
    [T_HIS_INTRO] =
        "In 2014 a translating network read the source sentence word by word into one\n"
        "vector of fixed size, and another network wrote the translation from that vector\n"
        "alone.",
    [T_HIS_BOTTLENECK] =
        "The bottleneck: what is left of the first word?\n"
        "An untrained recurrent encoder h_t = tanh(W h_(t-1) + U x_t) of size 8, seed\n"
        "123. The number is the gradient norm of what the decoder reads with respect to\n"
        "the first word.",
    [T_HIS_BOTTLENECK_HEADER] = "  length    last state only           attention over all states",
    [T_HIS_STATE_FORGETS] = "last state: at 50 words less than 1 %% is left of what was there at 5",
    [T_HIS_ATTENTION_REACHES] = "attention: the first word is one step away at any length",
    [T_HIS_BOTTLENECK_MEANING] =
        "  Attention keeps every h_t and lets the reader look back. (Training, and gates\n"
        "  as in an LSTM, slow the forgetting down; the size of the vector stays fixed.)",
    [T_HIS_BAHDANAU] =
        "Bahdanau's step: additive attention between two sentences\n"
        "For a decoder state s and every source state h_j:\n"
        "  score_j = v . tanh(W_s s + W_h h_j),  weights = softmax(scores),\n"
        "  context = sum over j of weights_j * h_j\n"
        "Hand-made states stand for a trained translator, so that the numbers can be\n"
        "followed: W_s = W_h = 2 I, v = (-4, -4, -4, -4). tanh flattens what s and h_j\n"
        "share, so with a negative v a shared direction scores highest.",
    [T_HIS_ONE_STEP] = "\n"
                       "  The decoder is about to write \"%s\":",
    [T_HIS_ALIGNMENT] =
        "\n"
        "  All four steps: each English word looks at its French one, order and all.",
    [T_HIS_BAHDANAU_MEANING] =
        "  \"black\" and \"cat\" cross over: no position is privileged. Score, softmax,\n"
        "  weighted sum: the three steps of section 3.3.1, with another score. In 2017\n"
        "  the Transformer kept attention, let a sentence attend to itself, and dropped\n"
        "  the recurrence.",
    [T_HIS_SHAPES] = "Self-attention and cross-attention, as shapes",
    [T_HIS_SELF] = "  Self-attention: queries, keys and values from one sequence of 5.",
    [T_HIS_CROSS] =
        "\n"
        "  Cross-attention: queries from a sequence of 3, keys and values from one of 5.",
    [T_HIS_SHAPES_MEANING] =
        "  The weights are (queries, keys): square within one sequence, 3 by 5 between\n"
        "  two. The output has one row per query.",
    // ---- self-test
    [T_ST_TITLE] = "Ten questions",
    [T_ST_INTRO] =
        "Each question comes with numbers computed just now. Answer it before you go on.",
    [T_ST_NUMBER] = "Question %d",
    [T_ST_PRESS] = "  (press a key for the answer)",
    [T_ST_ANSWER] = "Answer:",
    [T_ST1_QUESTION] =
        "Which three numbered lines does section 3.3.1 produce for journey, and what does\n"
        "each of them mean? Check these against your own run.",
    [T_ST1_ANSWER] =
        "The scores (dot products of journey with every token), the weights (their\n"
        "softmax: shares that add up to 1) and the context vector (all tokens mixed in\n"
        "these shares). The inputs are fixed, so every machine gives these digits.",
    [T_ST2_QUESTION] = "With unit vectors: why is a dot product a measure of similarity?",
    [T_ST2_ANSWER] =
        "It adds up how far two directions coincide: 1 for the same direction, 0 for\n"
        "right angles (nothing shared), -1 for opposite ones. Similar words have similar\n"
        "embeddings, so their dot product is large.",
    [T_ST3_QUESTION] = "Why are scores divided by sqrt(d_k)? Give the whole chain.",
    [T_ST3_ANSWER] =
        "Large d_k -> dot products spread like sqrt(d_k) -> the softmax becomes a step,\n"
        "one weight near 1 -> its derivative is nearly 0 -> learning stalls. Dividing by\n"
        "sqrt(d_k) brings the spread back to 1 for every d_k.",
    [T_ST4_QUESTION] =
        "What is the difference between weight parameters and attention weights? Which of\n"
        "these numbers changed when the sentence got another ending, and why?",
    [T_ST4_ANSWER] =
        "Parameters (W_query, ...) are what training learns; the same for every input.\n"
        "Attention weights are computed by each forward pass from its input, so only they\n"
        "changed.",
    [T_ST5_QUESTION] = "What two things must hold for attention weights after the causal mask?",
    [T_ST5_ANSWER] =
        "Every row still adds up to 1, and everything above the diagonal is exactly 0.",
    [T_ST6_QUESTION] =
        "Softmax first, then mask, then renormalise: the future took part in the softmax.\n"
        "Why does nothing leak?",
    [T_ST6_ANSWER] =
        "The future only entered the common denominator, and renormalising divides it\n"
        "away: what remains is exactly a softmax over the allowed positions. (In floating\n"
        "point a huge future score can still break it, which is why -inf before the\n"
        "softmax is better.)",
    [T_ST7_QUESTION] =
        "Why does a split multi-head attention divide by sqrt(head_dim), not sqrt(d_out)?\n"
        "(64 queries and keys of 64 numbers with variance 1.)",
    [T_ST7_ANSWER] =
        "Each score adds up head_dim products, so its spread is about sqrt(head_dim) = 8.\n"
        "Dividing by 8 gives 1; dividing by sqrt(768) = 27.7 makes the weights much too\n"
        "even.",
    [T_ST8_QUESTION] = "Why does view fail after transpose, and what does contiguous() do?",
    [T_ST8_ANSWER] =
        "transpose swaps strides and leaves memory as it is; then the numbers that view\n"
        "wants to join are not neighbours, so it refuses. contiguous() copies them into\n"
        "the new order; after that view is legal.",
    [T_ST9_QUESTION] =
        "Name three differences between the wrapper and the split multi-head attention.",
    [T_ST9_ANSWER] =
        "1. The split version ends in out_proj, which mixes the heads; the wrapper has\n"
        "   none.\n"
        "2. It divides by sqrt(head_dim), since its heads share d_out; a wrapper head\n"
        "   divides by sqrt(d_out).\n"
        "3. It projects once for all heads: 3 matrices instead of 3 * H.\n"
        "And so d_out = 2 gives 2 columns in the split version, 4 in the wrapper.",
    [T_ST10_QUESTION] =
        "Which shapes does MultiHeadAttention give for d_out = 2 with 2 heads, and in\n"
        "GPT-2's size? Why does the second matter?",
    [T_ST10_ANSWER] =
        "(2, 6, 2), and (2, 8, 768) for an input of (2, 8, 768). Equal shapes in and out\n"
        "mean that blocks can be stacked, as GPT-2 stacks 12 of them.",
    // ---- glossary
    [T_GLO_TITLE] = "The chapter's terms",
    [T_GLO_SELF_ATTENTION] = "self-attention",
    [T_GLO_SELF_ATTENTION_IS] =
        "  Every position of a sequence may take from every position of the same\n"
        "  sequence.",
    [T_GLO_CONTEXT_VECTOR] = "context vector",
    [T_GLO_CONTEXT_VECTOR_IS] =
        "  The new vector of a token: a weighted mix of what all tokens hand over.",
    [T_GLO_SCORE] = "attention score",
    [T_GLO_SCORE_IS] = "  The dot product of a query and a key, before the softmax.",
    [T_GLO_WEIGHT] = "attention weight",
    [T_GLO_WEIGHT_IS] =
        "  What the softmax makes of the scores: shares of a row that add up to 1,\n"
        "  computed anew for every input.",
    [T_GLO_PARAMETER] = "weight parameter",
    [T_GLO_PARAMETER_IS] =
        "  A number that training changes, such as an element of W_query; the same for\n"
        "  every input.",
    [T_GLO_QUERY] = "query",
    [T_GLO_QUERY_IS] = "  What a token is looking for.",
    [T_GLO_KEY] = "key",
    [T_GLO_KEY_IS] = "  What a token can be found under.",
    [T_GLO_VALUE] = "value",
    [T_GLO_VALUE_IS] = "  What a token hands over when it is found.",
    [T_GLO_SCALED] = "scaled dot-product attention",
    [T_GLO_SCALED_IS] = "  softmax(Q K^T / sqrt(d_k)) V.",
    [T_GLO_CAUSAL] = "causal (masked) attention",
    [T_GLO_CAUSAL_IS] =
        "  Scores of later positions become -inf before the softmax; their weight is 0.",
    [T_GLO_BUFFER] = "buffer",
    [T_GLO_BUFFER_IS] =
        "  A tensor that belongs to a module without being trained, such as the mask.",
    [T_GLO_DROPOUT] = "dropout",
    [T_GLO_DROPOUT_IS] =
        "  In training, a share p of the weights is set to 0 and the rest divided by 1 -\n"
        "  p.",
    [T_GLO_HEAD] = "head",
    [T_GLO_HEAD_IS] =
        "  One attention with its own queries, keys and values; several run side by side.",
    [T_GLO_HEAD_DIM] = "head_dim",
    [T_GLO_HEAD_DIM_IS] =
        "  Numbers per query and key of one head, d_out / num_heads; scores are divided\n"
        "  by its square root.",
    [T_GLO_BATCHED] = "batched matrix product",
    [T_GLO_BATCHED_IS] =
        "  A product of the last two dimensions, repeated over all dimensions before\n"
        "  them: all heads in one call.",
    [T_GLO_OUT_PROJ] = "out_proj",
    [T_GLO_OUT_PROJ_IS] = "  The last linear layer, (d_out, d_out): it lets the heads mix.",
    // ---- trace
    [T_TRACE_TITLE] = "every intermediate of a forward",
    [T_TRACE_INTRO] =
        "%s, seed %u.\n"
        "Each entry: name, dtype, shape, strides (in elements), numbers. A stride says\n"
        "how far to go in memory for the next index; transposed tensors show it.",
    [T_TRACE_MEANING] =
        "\n"
        "The trace is computed beside the output, from the definition; the output itself\n"
        "comes from the engine and has the same bits with and without a trace.",
    // ---- training
    [T_TRAIN_TITLE] = "Two heads learn to look in two places",
    [T_TRAIN_INTRO] =
        "Random tokens from a vocabulary of %d, sequences of %d. At every position the\n"
        "model must name two tokens: the one before, and the one three places back. It\n"
        "has learned token and position embeddings of %d numbers, one causal multi-head\n"
        "attention and a linear readout; nothing else can move information between\n"
        "positions.\n"
        "\n"
        "Two models of the same width train side by side from seed %d on the same\n"
        "batches: one with two heads, one with a single head. %d steps of AdamW\n"
        "(learning rate 0.01), %d fresh random sequences in each. Accuracy is measured on\n"
        "sequences they never see in training; guessing would get one in ten right.",
    [T_TRAIN_BEFORE] = "Before training",
    [T_TRAIN_STEPS] = "Training",
    [T_TRAIN_AFTER] = "After training",
    [T_TRAIN_ROW] = "  step %4d   loss, two heads: %.4f   one head: %.4f",
    [T_TRAIN_TWO_HEADS] = "\n"
                          "two heads: %.1f %% right (one back %.1f %%, three back %.1f %%)",
    [T_TRAIN_ONE_HEAD] = "\n"
                         "one head: %.1f %% right (one back %.1f %%, three back %.1f %%)",
    [T_TRAIN_TWO_SOLVE] = "two heads: more than 95 %% right",
    [T_TRAIN_ONE_CANNOT] = "one head: less than 75 %% right",
    [T_TRAIN_MEANING] =
        "\n"
        "Each of the two heads has found its own place: one looks one step back, the\n"
        "other three. Nobody told them which; the gradient did. (Rows 0 to 2 have no\n"
        "token three places back; nothing was asked of them.) The single head has to put\n"
        "both places into one row of weights. Its output is a blend of two tokens, and a\n"
        "blend does not say which token came from where: it knows the pair and has to\n"
        "guess the order. Its loss stays near ln 2 = 0.69, the price of a coin toss.",
    [T_TRAIN_PROGRESS] = "step %lld of %lld, loss %.4f and %.4f, %.0f s left",
    [T_TRAIN_STOPPED] = "  stopped after step %lld; the state is in %s (go on with --resume)",
    [T_TRAIN_RESUMED] = "  going on after step %lld, from %s",
    [T_LEAK_TITLE] = "What a missing mask leaks",
    [T_LEAK_INTRO] =
        "Next-token prediction on random tokens from a vocabulary of %d. Nothing about\n"
        "the next token can be known from those before it, so no honest model can get\n"
        "below a loss of ln(vocabulary) = %.4f. Two models train from seed %d on the\n"
        "same batches: one without the causal mask, one with it. Bars: the loss.",
    [T_LEAK_HEADER] = "   step  without the mask              with the mask",
    [T_LEAK_WEIGHTS] =
        "Where the model without a mask looks: the place to the right, the answer itself",
    [T_LEAK_READS] = "without the mask: loss below 0.05; it reads the answer",
    [T_LEAK_CANNOT] = "with the mask: loss within 0.1 of ln(vocabulary) = %.4f",
    [T_LEAK_MEANING] =
        "\n"
        "A loss that falls much too well is how a leak shows itself. Such a model is\n"
        "useless when it has to write: there, the next token is not yet there to be read.",
    // ---- figures
    [T_FIG_NONE] =
        "this program was built without cairo, so it cannot draw figures. Install libcairo2-dev and build again.",
    [T_FIG_WRITTEN] = "  %s",
    [T_FIG_OTHER_LABELS] = "the figures are drawn with English labels",
    [T_FIG_TITLE] = "The chapter's figures",
    [T_FIG_1] = "Simple self-attention: weights of the six tokens (rows add up to 1)",
    [T_FIG_2] = "One query, eight keys, d_k = 64, before and after scaling (seed %d)",
    [T_FIG_2_RAW] = "softmax(scores)",
    [T_FIG_2_SCALED] = "softmax(scores / sqrt(64))",
    [T_FIG_2_VALUE] = "attention weight",
    [T_FIG_3] = "Weights before and after the causal mask",
    [T_FIG_3_BEFORE] = "without mask: every token sees the sentence",
    [T_FIG_3_AFTER] = "with mask: j > i is 0, rows renormalised",
    [T_FIG_QUERY] = "query",
    [T_FIG_KEY] = "key",
};
