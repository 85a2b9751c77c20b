// text_zh.c: the Chinese text.
#include "text.h"

const char *const text_zh[TEXT_COUNT] = {
    // ---- the whole program
    [T_CLAIM_HOLDS] = "[成立]",
    [T_CLAIM_BROKEN] = "[不成立]",
    [T_SAME_BY_LIBRARY] = "用库再算一遍。",
    [T_STEPS_EQUAL_MODULE] = "逐步计算与库中模块的结果一致（误差 1e-6 以内）",
    [T_HEAT_SCALE] = "行：查询，列：键；0 \" .:-=+*#@\" 1",
    [T_CHAPTER_TITLE] = "第 3 章：注意力，从点积走到 GPT-2 里的那个模块",
    [T_CHAPTER_INTRO] =
        "一个六词元的句子，依次走过九个小节。每一节只在上一节的基础上增加一样东西，\n"
        "标出每个中间结果的形状，最后请库再算一遍作对照。以 [成立] 开头的行，是程序\n"
        "刚刚验证过的结论。所有数字都是 float32；使用文中给出的随机种子，torch 打印出\n"
        "的数字与这里相同。\n"
        "\n"
        "小节编号按演示的次序编排，与正文的编号略有错位（这里的 3.3.x 是正文的 3.2，\n"
        "3.4.x 是 3.3，3.5.x 是 3.4，3.6.x 是 3.5）。\n"
        "建议对照 docs/chapter03.zh.md 阅读。",
    [T_CHAPTER_END] = "本章到此结束。接下来可以试试：\n"
                      "  --exercise 1..4   四道习题，直接运行得出答案\n"
                      "  --pitfall 1..3    多头注意力的三个易错点，先看症状\n"
                      "  --saturation      为什么要除以 sqrt(d_k)\n"
                      "  --history         从一个固定向量到注意力\n"
                      "  --train           看注意力怎样学会“往哪里看”\n"
                      "  --selftest        十道自测题：先给证据，再给答案\n"
                      "  --help            其余选项",
    // ---- options
    [T_HELP] = "用法：chapter03_attention [选项]...\n"
               "用 C 算出整个注意力一章。不带选项时按顺序运行所有小节。\n"
               "\n"
               "显示什么（任选一项）：\n"
               "  --section 编号       一个小节，如 3.5.1；或一组小节，如 3.5\n"
               "  --exercise N         第 1 至 4 题\n"
               "  --pitfall N          第 1 至 3 个易错点：先看症状，再看正确写法\n"
               "  --saturation         d_k = 8、64、512 时的原始分数与缩放分数，并各训练一遍\n"
               "  --history            固定向量、加性注意力、自注意力与交叉注意力\n"
               "  --selftest           十道自测题，按键显示答案\n"
               "    --answers          与 --selftest 合用：直接显示答案\n"
               "  --glossary           术语表\n"
               "  --trace[=模块]       列出每个中间结果及其形状和步长；模块可选 v1、v2、\n"
               "                       causal、wrapper、mha（默认）\n"
               "  --train              两个头学会从两处抄写，一个头学不会\n"
               "    --no-mask          与 --train 合用：没有掩码时答案如何泄露\n"
               "    --steps N          与 --train 合用：训练 N 步后停止\n"
               "    --checkpoint 文件  与 --train 合用：按 Ctrl-C 时把状态存到哪里\n"
               "                       （默认 chapter03_attention.checkpoint）\n"
               "    --resume           与 --train 合用：从存下的状态继续\n"
               "  --figures 目录       把本章的三幅图画成 PNG 和 SVG\n"
               "\n"
               "其他选项：\n"
               "  --lang en|zh         语言（默认取自 LC_ALL、LC_MESSAGES 或 LANG）\n"
               "  --time               同时测量耗时（每次运行都不同）\n"
               "  -h, --help           本说明\n"
               "\n"
               "退出状态：0 成功；1 出错或有结论不成立；2 选项有误；130 训练中被 Ctrl-C 中断。\n"
               "示例：chapter03_attention --section 3.5.1 --lang zh",
    [T_OPT_TRY_HELP] = "可运行 'chapter03_attention --help' 查看用法。",
    [T_OPT_LANG] = "--lang：没有 '%s' 这种语言（可选 en、zh）%s",
    [T_OPT_TWO_ACTIONS] = "%s 和 %s 只能选一个",
    [T_OPT_EXERCISE] = "--exercise：'%s' 不是 1 到 4 的数字%s",
    [T_OPT_PITFALL] = "--pitfall：'%s' 不是 1 到 3 的数字%s",
    [T_OPT_STEPS] = "--steps：'%s' 不是 1 到 1000000 的数字%s",
    [T_OPT_NEEDS] = "%s 只能与 %s 一起使用",
    [T_OPT_MISSING_ARGUMENT] = "选项 '%s' 缺少参数%s",
    [T_OPT_UNKNOWN] = "无法识别的选项：'%s'%s",
    [T_OPT_EXTRA] = "无法识别的参数：'%s'%s",
    [T_OPT_SECTION] =
        "--section：没有 '%s' 这一节（可选 3.3.1、3.3.2、3.4.1、3.4.2、3.5.1、3.5.2、3.5.3、3.6.1、3.6.2）",
    [T_OPT_TRACE] = "--trace：没有 '%s' 这个模块（可选 v1、v2、causal、wrapper、mha）",
    // ---- 3.3.1
    [T_331_TITLE] = "简单自注意力：手算一个查询",
    [T_331_INTRO] =
        "句子 \"Your journey starts with one step.\" 有六个词元，每个词元是一个三维向量\n"
        "（嵌入）。我们为其中的 journey 造一个新向量，让它了解整个句子。现在还没有任何\n"
        "可训练的东西：下面的每个数都由这十八个数推出来。",
    [T_331_STEP_SCORES] = "第一步：打分。每个词元与 journey（x_2）有多大关系？\n"
                          "用点积来衡量：对应的数相乘，再全部加起来。",
    [T_331_CORRECTION] =
        "  正文印出的第四个分数是 0.8438。上面三个乘积之和是 0.8434，torch 的结果也是\n"
        "  如此；其余数字都一致。",
    [T_331_WHY_DOT] = "为什么用点积？看几个长度为 1 的向量：",
    [T_331_SAME] = "方向相同",
    [T_331_SIXTY_DEGREES] = "相差 60 度",
    [T_331_ORTHOGONAL] = "互相垂直",
    [T_331_OPPOSITE] = "方向相反",
    [T_331_WHY_DOT_MEANING] =
        "  点积量的是两个方向重合了多少：完全一致得 1，毫无重合得 0，正好相反得 -1。\n"
        "  嵌入把意思相近的词放在相近的方向上，于是这个数就代表了意思有多接近；\n"
        "  它还可以求导，也就可以用来学习。",
    [T_331_STEP_WEIGHTS] =
        "第二步：权重。把分数变成总和为 1 的份额。\n"
        "三种办法：s / sum(s)；exp(s) / sum(exp(s))；以及真正使用的 softmax，也就是先减去\n"
        "最大的分数再照第二种做。对这组温和的数字，后两种结果相同。",
    [T_331_WHY_NOT_SUM] = "为什么不直接除以总和？因为分数可能是负的：",
    [T_331_WHY_NOT_SUM_MEANING] =
        "  总和是 -0.5，于是最高分得到 -2 的份额，最低分反而得到 4。softmax 里的指数\n"
        "  永远为正：份额不会是负数，次序得以保持，求导也便于训练。",
    [T_331_WHY_NOT_NAIVE] = "为什么不照公式直接算 exp(s) / sum of exp(s)？",
    [T_331_NAIVE_IS_NAN] = "exp(1000) 在 float32 中是无穷大，而无穷大除以无穷大不是数（NaN）",
    [T_331_WHY_NOT_NAIVE_MEANING] =
        "  先从所有分数里减去最大的那个，商并不改变（因子 exp(-max) 上下抵消），\n"
        "  而每个指数都不会超过 0，也就不会溢出。",
    [T_331_STEP_CONTEXT] = "第三步：上下文向量。按这些份额把六个向量混合起来。\n"
                           "context_vec_2 = sum over j of attn_weights_2[j] * x_j",
    [T_331_CONTEXT_MEANING] =
        "  journey 从自己（0.2379）和 starts（0.2333）那里取得最多，因为这两个向量几乎\n"
        "  相同；从 one（0.1082）那里取得最少。",
    [T_331_LIBRARY_SOFTMAX] = "attn_softmax 给出相同的权重（误差 1e-6 以内）",
    [T_331_SUMMARY] = "\n"
                      "一句话：点积打分，softmax 分配，加权混合。",
    // ---- 3.3.2
    [T_332_TITLE] = "简单自注意力：一次算完所有查询",
    [T_332_INTRO] = "刚才只算了 journey，现在每个词元都算一遍。对查询和键的双重循环就是一次矩阵\n"
                    "乘法，混合也是一次矩阵乘法。这三行代码会在后面每一节里反复出现。",
    [T_332_STEP_SCORES] = "attn_scores = inputs @ inputs.T：每个词元与每个词元打分",
    [T_332_LOOPS_EQUAL] = "对 i、j 的双重循环给出相同的数（误差 1e-6 以内）",
    [T_332_SYMMETRIC] = "矩阵是对称的：x_i . x_j = x_j . x_i",
    [T_332_STEP_WEIGHTS] = "attn_weights = softmax(attn_scores, dim=-1)：每一行分配总量 1",
    [T_332_WEIGHTS_MEANING] =
        "  行属于查询，列属于键：journey 这一行说明 journey 从每个词元各取多少。\n"
        "  权重不再对称，因为每一行除以的是自己的总和。",
    [T_332_STEP_CONTEXT] = "all_context_vecs = attn_weights @ inputs",
    [T_332_CONTEXT_MEANING] = "  journey 一行就是 3.3.1 节的 context_vec_2。",
    [T_332_WRONG_AXIS] = "最常见的失误：softmax 用错了轴，写成 dim=0",
    [T_332_WRONG_AXIS_MEANING] =
        "  不报错，形状也对，数字看着也像；可是现在和为 1 的是列而不是行。\n"
        "  每个查询分配的是它自己的注意力，所以是 dim=-1。",
    [T_332_LIBRARY] = "attn_scaled_dot_product_attention（scale = 1）结果一致（1e-6 以内）",
    [T_332_SUMMARY] = "\n"
                      "一句话：两次矩阵乘法，中间夹一次按行的 softmax。",
    // ---- 3.4.1
    [T_341_TITLE] = "查询、键、值：能够学习的注意力",
    [T_341_INTRO] = "到目前为止，谁关注谁完全由嵌入决定，没有什么可学的。现在用三个矩阵给每个词元\n"
                    "三个角色，就像检索资料：\n"
                    "  查询 query   这个词元在找什么          （输入的搜索词）\n"
                    "  键 key       凭什么能找到这个词元      （索引里的条目）\n"
                    "  值 value     找到之后它交出什么        （打开后读到的内容）",
    [T_341_STEP_PARAMETERS] = "第一步：三个参数矩阵，各为 torch.rand(3, 2)，种子 123",
    [T_341_STEP_PROJECT] = "第二步：journey 的三个角色：x_2 @ W_query、x_2 @ W_key、x_2 @ W_value",
    [T_341_ROLES] = "  进去三个数，出来两个数：d_in = 3，d_out = 2。",
    [T_341_STEP_ALL_KEYS] = "第三步：哪怕只有一个查询，也要用到所有的键和值\n"
                            "journey 要与六个词元逐一比较，也可能从每一个那里取内容。",
    [T_341_STEP_SCORES] = "第四步：打分，query_2 . key_j",
    [T_341_STEP_WEIGHTS] = "第五步：权重，softmax(attn_scores_2 / sqrt(d_k))，d_k = 2",
    [T_341_SCALE_MEANING] =
        "  d_k 项之和的点积大约按 sqrt(d_k) 增大。如果不除，过大的分数会把 softmax 推成\n"
        "  台阶：一个权重接近 1，其余接近 0，几乎没有梯度可学。\n"
        "  用 --saturation 可以看到 d_k = 8、64、512 的情形。",
    [T_341_STEP_CONTEXT] = "第六步：上下文向量，attn_weights_2 @ values",
    [T_341_LIBRARY] = "SelfAttentionV1（种子 123）的 journey 一行就是它（误差 1e-6 以内）",
    [T_341_SUMMARY] = "\n"
                      "一句话：由学出来的矩阵决定拿什么去比较、交出什么内容。",
    // ---- 3.4.2
    [T_342_TITLE] = "SelfAttentionV1 与 SelfAttentionV2",
    [T_342_INTRO] =
        "把 3.4.1 的步骤推广到六个词元，装进一个模块。模块算一遍，再用它的参数逐步算一遍。",
    [T_342_STEP_V1] = "SelfAttentionV1(3, 2)，种子 123：直接用矩阵，x @ W",
    [T_342_STEP_V2] = "SelfAttentionV2(3, 2)，种子 789：改用 Linear 层，x @ W.T",
    [T_342_WHY_DIFFERENT] =
        "  公式相同而数字不同，原因有二：初始值不同（Linear 在零的两侧 +-1/sqrt(d_in)\n"
        "  范围内取值，torch.rand 在 [0, 1) 内取值）；存放方式不同（Linear 的权重按\n"
        "  (d_out, d_in) 存放）。",
    [T_342_EXERCISE] = "[练习 3.1] 把 V2 的权重转置后交给 V1",
    [T_342_BIT_IDENTICAL] = "与 sa_v2 的结果逐位相同：两者是同一个公式",
    [T_342_TWO_WEIGHTS] = "同一个词 weight 的两种含义：权重参数与注意力权重",
    [T_342_CHANGED_INPUT] = "  把最后一个词元 step 换成 [0.90, 0.10, 0.20]，模块本身不动。",
    [T_342_ATTENTION_MOVED] = "注意力权重随输入改变了",
    [T_342_PARAMETERS_STAYED] = "权重参数（W_query.weight）没有变",
    [T_342_TWO_WEIGHTS_TABLE] =
        "                权重参数                    注意力权重\n"
        "  是什么        W_query、W_key、W_value     每行和为 1 的一组份额\n"
        "  从哪里来      训练                        每次前向计算\n"
        "  训练之后      固定不变                    换个输入就变\n"
        "  决定什么      怎样变换输入                从每个词元取多少",
    [T_342_SUMMARY] = "\n"
                      "一句话：V2 就是 V1，只是初始值更好，权重存放得更规整。",
    // ---- 3.5.1
    [T_351_TITLE] = "因果掩码：不许往后看",
    [T_351_INTRO] =
        "语言模型根据前文预测下一个词元。对位置 i 来说，后面的词元就是答案，所以它只准\n"
        "关注 1 到 i 的位置。下面的分数来自 SelfAttentionV2，种子 789。",
    [T_351_WAY_A] = "做法 A：先 softmax，再清掉对角线以上的部分，最后重新归一化\n"
                    "tril 保留下三角，包括对角线。",
    [T_351_WAY_B] = "做法 B：先把对角线以上填成 -inf，再做一次 softmax\n"
                    "triu(ones, diagonal=1) 标出要去掉的位置；exp(-inf) 为 0，每行自然和为 1。",
    [T_351_WAYS_EQUAL] = "两种做法得到相同的权重（误差 1e-6 以内）",
    [T_351_UPPER_ZERO] = "对角线以上全部恰好为 0",
    [T_351_SCALE_ORDER] = "先掩码还是先除以 sqrt(d_k)，结果逐位相同（-inf 除以什么都是 -inf）",
    [T_351_CORRECTION] =
        "  正文这里印的是另一组权重（第 2 行 0.5597 0.4403，第 4 行 0.4077 0.4516 0.0802\n"
        "  0.0605）。任何参数都不可能从这句话算出它们：journey 与 starts 的每个数只差\n"
        "  0.02，每一行给两者的权重必然相近，可那一行里 journey 的份额是 starts 的\n"
        "  5.6 倍。正确的值如上：1 / 0.5517 0.4483 / 0.3800 0.3097 0.3103 / ...",
    [T_351_WRONG_DIAGONAL] = "值得犯一次的错误：triu 写成 diagonal=0",
    [T_351_WRONG_DIAGONAL_MEANING] =
        "  这样连对角线也被掩掉：没有词元看得见自己，第一个词元什么也看不见。\n"
        "  对“什么都没有”做 softmax，没有正确答案可言。",
    [T_351_NO_LEAK] = "未来会泄露吗？换掉最后一个词元，看前面各行变不变",
    [T_351_A_ROUNDING] = "做法 A：前面各行在舍入误差内不变（1e-6 以内）",
    [T_351_B_BITS] = "做法 B：前面各行逐位不变",
    [T_351_HUGE] = "  再换成一个极大的词元 [4000, 0, 0]：",
    [T_351_A_BREAKS] = "做法 A 崩溃：份额全被未来占去，剩下的是 0 / 0",
    [T_351_B_HOLDS] = "做法 B 毫无察觉：前面各行仍然逐位不变",
    [T_351_NO_LEAK_MEANING] =
        "  在纸面上两者相等，都不泄露：剩下的部分除以自己的和，等于只对剩下的部分做\n"
        "  softmax，因为公共的分母约掉了。但在浮点运算中，做法 A 要先拿未来算一遍再丢掉，\n"
        "  做法 B 从头到尾不碰未来。请用做法 B。",
    [T_351_TARGETS] = "掩码带来的好处：一次前向，每个位置都是一道预测题",
    [T_351_TARGETS_MEANING] =
        "  长度为 L 的序列一次前向就有 L 个“下一个词元”的监督信号（最后一个的答案是窗口\n"
        "  之后的词元）。第 1 行把全部注意力给了自己：它没有别的可看。",
    [T_351_SUMMARY] = "\n"
                      "一句话：softmax 之前填 -inf，未来的权重就恰好为 0。",
    // ---- 3.5.2
    [T_352_TITLE] = "注意力权重上的 dropout",
    [T_352_INTRO] = "训练时，dropout 以概率 p 把每个权重置为 0，让模型不过分依赖个别位置。\n"
                    "留下来的乘以 1 / (1 - p)，使期望保持不变。",
    [T_352_STEP_ONES] = "dropout(ones(6, 6))，p = 0.5，种子 123",
    [T_352_TWO] = "留下来的都是 2.0 = 1 / (1 - 0.5)",
    [T_352_PLATFORM] =
        "  哪些元素留下取决于随机数流。这里用的是 torch 的 CPU 随机数流；带 MKL 的 torch\n"
        "  或别的平台可能印出不同的图样，但 2.0 处处相同。",
    [T_352_STEP_TEN_PERCENT] = "换成 p = 0.1（p = 0.5 时分不清是 1 / p 还是 1 / (1 - p)）",
    [T_352_ONE_OVER_KEEP] = "留下来的都是 1.1111 = 1 / (1 - 0.1)，而不是 1 / 0.1 = 10",
    [T_352_STEP_WEIGHTS] = "dropout(attn_weights_inf)，p = 0.5，种子 123：在 softmax 之后",
    [T_352_WEIGHTS_MEANING] =
        "  每一行的和不再是 1，只在多次抽取的平均意义上是 1。有的行甚至会全部丢光（这里的\n"
        "  journey）。实际训练常用 p = 0.1 或 0.2。",
    [T_352_STEP_EVAL] = "eval() 之后：dropout 什么也不做",
    [T_352_EVAL_SAME] = "权重原样输出，逐位不变",
    [T_352_EVAL_DRAWS_NOTHING] = "而且没有消耗随机数",
    [T_352_STEP_MEAN] = "dropout(ones(6, 6)) 抽 %d 次的平均值",
    [T_352_MEAN_ONE] = "都在 1 附近 0.01 之内：因子 1 / (1 - p) 保住了平均值",
    [T_352_SUMMARY] = "\n"
                      "一句话：训练时丢掉一些权重、放大其余的，推理时什么也不做。",
    // ---- 3.5.3
    [T_353_TITLE] = "CausalAttention：把掩码、dropout 和批处理装进一个模块",
    [T_353_INTRO] = "同一句话放两遍，组成形状 (2, 6, 3) 的一批。CausalAttention(d_in=3, d_out=2,\n"
                    "context_length=6, dropout=0.0)，种子 123。",
    [T_353_STEP_SHAPES] = "每一步和它的形状\n"
                          "前面多了批维度，keys.T 就要写成 keys.transpose(1, 2)。",
    [T_353_STEP_MODULE] = "模块的输出",
    [T_353_BATCH_ENTRIES] = "两句结果逐位相同：批里的各份互不影响",
    [T_353_BUFFER] = "模块里存着什么：三个参数，一个 buffer",
    [T_353_BUFFER_MEANING] =
        "  掩码是 buffer：它属于模块、随模块保存，但它是常量，没有梯度，也不参与训练。\n"
        "  （本库只在需要时才把它造出来。）",
    [T_353_LENGTHS] = "较短的序列只用掩码的左上角；超长的会被拒绝",
    [T_353_SHORT_SAME] = "4 个词元：与 6 个词元时的前 4 行逐位相同",
    [T_353_TOO_LONG] = "7 个词元：%s",
    [T_353_NAN] = "对因果性的严格考验：最后一个词元是 NaN\n"
                  "单靠乘以 0 的权重是不够的：0 * NaN 还是 NaN。",
    [T_353_NAN_SAME] = "第 1 到 5 行逐位不变：被掩掉的内容根本没有读",
    [T_353_SUMMARY] = "\n"
                      "一句话：可以拿去训练语言模型的自注意力。",
    // ---- 3.6.1
    [T_361_TITLE] = "MultiHeadAttentionWrapper：几个头并排工作",
    [T_361_INTRO] =
        "一组投影只能给每个词元一种关注方式。用几组投影，也就是几个头，就能同时跟踪几种\n"
        "关系。最简单的做法：让几个完整的因果注意力并排运行，再把输出拼起来。种子 123，\n"
        "d_out = 2，两个头。",
    [T_361_STEP_HEADS] = "每个头单独的输出（批中的第一句）",
    [T_361_HEAD_0] =
        "  头 0 就是 3.5.3 节的模块：种子相同，最先抽到的数也相同。头 1 用的是接下来的数。",
    [T_361_STEP_CAT] = "沿最后一维拼接：cat([head 0, head 1], dim=-1)",
    [T_361_HEADS_EQUAL] = "包装器就是把各个头拼在一起（误差 1e-6 以内）",
    [T_361_SHAPE] = "(2, 6, 4)：两个头，每个头 d_out = 2 列",
    [T_361_EXERCISE] = "[练习 3.2] 两个头，但只要两列：取 d_out = 1",
    [T_361_EXERCISE_MEANING] = "  列数 = 头数 * d_out = 2 * 1 = 2，所以形状是 (2, 6, 2)。",
    [T_361_SUMMARY] = "\n"
                      "一句话：头多了，视角就多了，但每个头都要各自投影一遍。",
    // ---- 3.6.2
    [T_362_TITLE] = "MultiHeadAttention：只投影一次，再切成多个头",
    [T_362_INTRO] = "包装器要乘 3 * H 个小矩阵。GPT-2 只乘 3 个大矩阵，再把结果切成 H 个头。\n"
                    "能这样做，靠的是一次乘法同时算完所有的头。",
    [T_362_STEP_BATCHED] = "批量矩阵乘法：只乘最后两维，前面的维度都当作批",
    [T_362_BATCHED_EQUAL] = "每个头单独乘一次，结果相同（误差 1e-6 以内）",
    [T_362_STEP_PARAMETERS] =
        "MultiHeadAttention(3, 2, context_length=6, dropout=0.0, num_heads=2)，种子 123",
    [T_362_STEP_CHAIN] = "形状链：切分、注意力、合并、混合",
    [T_362_CHAIN_HEADER] = "  b = 2 句，T = 6 个词元，H = 2 个头，head_dim = d_out / H = 1",
    [T_362_STEP_MODULE] = "模块的输出",
    [T_362_STEP_COMPARE] = "包装器与切分版的比较",
    [T_362_COMPARE_TABLE] =
        "                         包装器                切分版（GPT-2）\n"
        "  d_out 的含义           每个头的宽度          所有头合起来的宽度\n"
        "  d_out = 2，H = 2 得到  (2, 6, 4)             (2, 6, 2)\n"
        "  投影                   3 * H 次小乘法        3 次大乘法\n"
        "  一个头的键             d_out 个数            head_dim = d_out / H 个数\n"
        "  分数除以               sqrt(d_out)           sqrt(head_dim)\n"
        "  由谁混合各个头         没有                  out_proj，(d_out, d_out) 加偏置",
    [T_362_TIMES_OFF] = "  （耗时每次不同；加 --time 可以测量。）",
    [T_362_TIMES] = "  %d 个头、%d 个词元、宽度 %d：每次前向，包装器 %.2f 毫秒，切分版 %.2f 毫秒",
    [T_362_EXERCISE] = "[练习 3.3] GPT-2 small：768 维，12 个头，每头 64 维，context_length 1024\n"
                       "种子 123；输入是同一随机数流中的 randn(2, 8, 768)。",
    [T_362_PARAMETERS] = "5 个参数张量，共 4 * 768 * 768 + 768 = 2360064 个数",
    [T_362_SAME_SHAPE] = "进去 (2, 8, 768)，出来 (2, 8, 768)：这样的块可以一层层叠起来",
    [T_362_GPT2_SIZES] = "  GPT-2 small（1.17 亿参数）： 768 = 12 个头 * 64，sqrt(64) = 8\n"
                         "  GPT-2 XL   （15 亿参数）：  1600 = 25 个头 * 64，sqrt(64) = 8",
    [T_362_SUMMARY] = "\n"
                      "一句话：投影一次，切分，各头同时做注意力，合并，再混合。",
    // ---- exercises
    [T_EX1_TITLE] = "习题 1：12、8、16 个头",
    [T_EX1_INTRO] =
        "把 3.6.2 节的 GPT-2 演示换成别的头数。head_dim = 768 / H 会变，形状和参数不变。\n"
        "输出变不变呢？",
    [T_EX1_HEADS] = "%d 个头：head_dim = %d",
    [T_EX1_RESULT] = "与 12 个头相比",
    [T_EX1_FIRST_SAME] = "%d 个头：第一个词元的输出相同（误差 1e-6 以内）",
    [T_EX1_LAST_DIFFERS] = "%d 个头：最后一个词元的输出不同",
    [T_EX1_SAME_COUNT] = "%d 个头：参数个数相同",
    [T_EX1_MEANING] =
        "\n"
        "第一个词元只看得见自己：在每个头里权重都是 1，所以把值切成 8、12 还是 16 个头毫无\n"
        "区别。要看头数的作用，得看有得选的词元，也就是最后一个。",
    [T_EX2_TITLE] = "习题 2：dropout 设为 0.5，然后 eval()",
    [T_EX2_INTRO] =
        "3.5.3 节的 CausalAttention，种子 123，dropout = 0.5。丢弃用的随机数接着生成参数的\n"
        "那条随机数流往下取。",
    [T_EX2_TRAIN] = "训练模式",
    [T_EX2_ENTRIES_DIFFER] = "批里两句相同的话，结果不同了：每个权重各抽各的",
    [T_EX2_AGAIN_DIFFERS] = "再做一次前向，数字又变了",
    [T_EX2_EVAL] = "eval() 之后",
    [T_EX2_EVAL_REPEATS] = "两次前向逐位相同",
    [T_EX2_EVAL_IS_P0] = "而且与 dropout = 0.0 的模块逐位相同",
    [T_EX2_MEANING] =
        "\n"
        "训练时留下来的权重加倍计算，单次输出跳动很大；多次前向的平均值就是 eval() 的输出。\n"
        "全零的一行（第二句的第一行）丢掉了它唯一的权重。",
    [T_EX3_TITLE] = "习题 3：为什么 d_out = 1、两个头得到 (2, 6, 2)",
    [T_EX3_INTRO] = "在包装器里，d_out 是每个头的输出宽度：\n"
                    "  每个头  (2, 6, 3) @ (3, d_out)     ->  (2, 6, d_out)\n"
                    "  拼接    num_heads 份，dim=-1       ->  (2, 6, num_heads * d_out)",
    [T_EX3_CASE] = "num_heads = 2，d_out = %d",
    [T_EX3_COLUMNS] = "2 * %d = %d 列",
    [T_EX3_MEANING] =
        "\n"
        "要得到 (2, 6, 4)，d_out 得是 2。批和词元数（2 和 6）始终不变：注意力为每个词元\n"
        "造出一个新向量，不多不少。",
    [T_EX4_TITLE] = "习题 4：out_proj 起什么作用",
    [T_EX4_INTRO] =
        "MultiHeadAttention(3, 2)，两个头，种子 123。一次照常运行，一次去掉 out_proj，\n"
        "到合并各头为止。",
    [T_EX4_WEIGHTS] = "注意力权重（out_proj 在它之后，两次相同）",
    [T_EX4_WITHOUT] = "没有 out_proj：第 0 列是头 0，第 1 列是头 1",
    [T_EX4_WITH] = "有 out_proj",
    [T_EX4_IS_LINEAR] = "有 = 没有 @ out_proj.weight.T + out_proj.bias（误差 1e-6 以内）",
    [T_EX4_MIXING] = "一个头能影响另一个头的那一列吗？把头 1 的值加倍试试",
    [T_EX4_APART] = "没有 out_proj：第 0 列逐位不变，两个头从不相遇",
    [T_EX4_MIXED] = "有 out_proj：第 0 列也变了，每个输出都混合了两个头",
    [T_EX4_MEANING] =
        "\n"
        "合并只是把各个头并排放好。out_proj 是模块里唯一能学会如何综合各头所见的地方。",
    // ---- pitfalls
    [T_PIT_SETTING] = "MultiHeadAttention(d_in=3, d_out=4, num_heads=2)，head_dim = 2，种子 123，\n"
                      "输入是两句话的一批。",
    [T_PIT_SYMPTOM] = "症状",
    [T_PIT_RIGHT] = "正确的写法",
    [T_PIT1_TITLE] = "易错点 1：该除以 sqrt(head_dim)，却除了 sqrt(d_out)",
    [T_PIT1_SYMPTOM] =
        "  不报错，形状正确，每行和为 1。只是权重比应有的更平坦；把别处训练好的模型拿来用，\n"
        "  答案总是差一点。",
    [T_PIT1_DIFFERENT] = "权重不同",
    [T_PIT1_LIBRARY] = "与库的权重一致（误差 1e-6 以内）",
    [T_PIT1_GPT2] = "放到 GPT-2 的规模：d_out = 768，head_dim = 64，8 个键，种子 123",
    [T_PIT1_MEANING] =
        "\n"
        "一个分数是 head_dim 个乘积之和，不是 d_out 个：这么多随机项的离散程度是\n"
        "sqrt(head_dim)。包装器里每个头有 d_out 个数，除以 sqrt(d_out) 没错；切分之后就该是\n"
        "sqrt(d_out / H)。写成 sqrt(keys.size(-1))，两种情形都不会错。",
    [T_PIT2_TITLE] = "易错点 2：transpose 之后直接 view",
    [T_PIT2_REFUSED] = "被拒绝：%s",
    [T_PIT2_WHY] = "  transpose 只改变内存的读法：同一个词元的两个头在内存里相隔 12 个数。\n"
                   "  而 view 要求结果里相邻的数在内存里也相邻。",
    [T_PIT2_WORSE] = "比报错更糟：不先转置回来就 view",
    [T_PIT2_SCRAMBLED] = "形状相同而数字不同：词元与头串了位",
    [T_PIT2_MEANING] =
        "\n"
        "先 transpose(1, 2)，再用 contiguous() 把数字按新次序排好，最后 view。\n"
        "（head_dim = 1 时，比如 3.6.2 节，不加 contiguous() 碰巧也合法：别当成写对了。）",
    [T_PIT3_TITLE] = "易错点 3：忘了 out_proj",
    [T_PIT3_SYMPTOM] = "  形状正确，数字看着合理，训练也能跑。但是：",
    [T_PIT3_GRADIENT_ZERO] = "out_proj 得不到梯度，这就暴露了问题",
    [T_PIT3_GRADIENT_FLOWS] = "out_proj 有了梯度",
    [T_PIT3_MEANING] = "\n"
                       "反向传播之后，找一找梯度一直为 0 的参数：它们没有参与计算。\n"
                       "out_proj 到底添了什么，习题 4 用数字给出了答案。",
    // ---- saturation
    [T_SAT_TITLE] = "为什么分数要除以 sqrt(d_k)",
    [T_SAT_INTRO] =
        "如果查询和键的每个数均值为 0、方差为 1，它们的点积就均值为 0、方差为 d_k：\n"
        "因为那是 d_k 个方差为 1 的乘积之和。所以原始分数的离散程度随 sqrt(d_k) 增大，\n"
        "除过之后则始终在 1 左右，与 d_k 无关。",
    [T_SAT_SOFTMAX] = "先只看 softmax（torch.randn，种子 %d；%d 个查询，%d 个键）",
    [T_SAT_SOFTMAX_HEADER] = "                      分数的     最大的         熵     p(1-p)\n"
                             "    d_k  分数       离散程度       权重   （比特）       均值",
    [T_SAT_RAW] = "原始",
    [T_SAT_SCALED] = "缩放",
    [T_SAT_SLOPE_FALLS] = "原始：softmax 的斜率 p(1-p) 从 d_k = 8 到 512 降到不足五分之一",
    [T_SAT_SLOPE_STAYS] = "缩放：变化不到 10%%",
    [T_SAT_SOFTMAX_MEANING] =
        "  d_k = 512 时，原始分数几乎把全部权重给了一个键（16 个键平均分配时熵为 4 比特）。\n"
        "  p(1-p) 是权重对自身分数的导数：它接近 0 的地方，分数怎么变权重都不动，也就学不到\n"
        "  东西。",
    [T_SAT_LEARNING] =
        "学习过程（种子 %d，AdamW %d 步，学习率 0.003）\n"
        "一个头；对每个词元，一条固定的规则在 16 个词元里指定它的最佳匹配，输出应当就是那个\n"
        "词元。W_query 和 W_key 的初值使查询和键的方差为 1。|grad| 是欧几里得范数，分别取\n"
        "进入 softmax 的分数的梯度和 W_query 的梯度。某一行在分数梯度中的部分不到最大那行的\n"
        "1 %% 时，称这一行沉默。损失取最后 5 步的平均。",
    [T_SAT_LEARNING_HEADER] =
        "                        分数     沉默的    W_query    W_query       损失\n"
        "                      |grad|         行     |grad|     |grad|       截至\n"
        "    d_k  分数        第 1 步    第 1 步    第 1 步     第%2d步     第%2d步",
    [T_SAT_SCORE_GRADIENT] = "原始：能穿过 softmax 的梯度随 d_k 增大而减小",
    [T_SAT_SCALED_LEARNS] = "d_k = 512 时，走同样的步数，缩放的版本学到更多",
    [T_SAT_LEARNING_MEANING] =
        "  这几列要仔细读。穿过 softmax 的梯度确实像推理所说的那样变小，沉默的行越来越多，\n"
        "  它们学不到东西。但原始版本接下来乘的是没有除过的键，大了 sqrt(d_k) 倍，所以\n"
        "  W_query 的梯度范数不一定趋于零：少数还没饱和的行声音很大。缩放之后，几乎每一行\n"
        "  都有发言权，范数也大致与 d_k 无关，一个学习率就能适用于各种大小。",
    [T_SAT_SUMMARY] = "\n"
                      "一句话：除以 sqrt(d_k)，让 softmax 停留在还能动的地方。",
    // ---- history
    [T_HIS_TITLE] = "从一个固定向量到注意力",
    [T_HIS_INTRO] =
        "2014 年，做翻译的网络逐词读完源句，压缩成一个大小固定的向量；另一个网络只凭这个\n"
        "向量写出译文。",
    [T_HIS_BOTTLENECK] =
        "瓶颈：第一个词还剩下多少？\n"
        "一个未经训练、大小为 8 的循环编码器 h_t = tanh(W h_(t-1) + U x_t)，种子 123。\n"
        "表中是解码器读到的内容对第一个词的梯度范数。",
    [T_HIS_BOTTLENECK_HEADER] = "  长度      只看最后的状态            对所有状态做注意力",
    [T_HIS_STATE_FORGETS] = "最后的状态：读到 50 个词时，第一个词的影响不到 5 个词时的 1%%",
    [T_HIS_ATTENTION_REACHES] = "注意力：句子再长，到第一个词也只有一步",
    [T_HIS_BOTTLENECK_MEANING] =
        "  注意力保留每一个 h_t，让读的一方可以回头看。（训练，以及 LSTM 那样的门控，能减缓\n"
        "  遗忘，但向量的大小依旧是固定的。）",
    [T_HIS_BAHDANAU] =
        "Bahdanau 的一步：两个句子之间的加性注意力\n"
        "对解码器状态 s 和每个源状态 h_j：\n"
        "  score_j = v . tanh(W_s s + W_h h_j)，weights = softmax(scores)，\n"
        "  context = sum over j of weights_j * h_j\n"
        "这里用手工给定的状态代替训练好的翻译模型，好让数字跟得上：W_s = W_h = 2 I，\n"
        "v = (-4, -4, -4, -4)。tanh 会压平 s 与 h_j 共有的部分，而 v 为负，所以方向相同时\n"
        "得分最高。",
    [T_HIS_ONE_STEP] = "\n"
                       "  解码器正要写出 \"%s\"：",
    [T_HIS_ALIGNMENT] = "\n"
                        "  全部四步：每个英语词都看向对应的法语词，连词序不同也不怕。",
    [T_HIS_BAHDANAU_MEANING] =
        "  \"black\" 和 \"cat\" 交叉对应：没有哪个位置天生优先。打分、softmax、加权求和，正是\n"
        "  3.3.1 节的三步，只是打分的办法不同。2017 年，Transformer 保留了注意力，让句子\n"
        "  关注它自己，把循环去掉了。",
    [T_HIS_SHAPES] = "用形状区分自注意力与交叉注意力",
    [T_HIS_SELF] = "  自注意力：查询、键、值都来自同一个长度为 5 的序列。",
    [T_HIS_CROSS] = "\n"
                    "  交叉注意力：查询来自长度为 3 的序列，键和值来自长度为 5 的序列。",
    [T_HIS_SHAPES_MEANING] =
        "  权重的形状是（查询数，键数）：同一序列内是方阵，两个序列之间是 3 乘 5。\n"
        "  输出的行数等于查询数。",
    // ---- self-test
    [T_ST_TITLE] = "十道自测题",
    [T_ST_INTRO] = "每道题都附有刚刚算出来的数字。先自己回答，再往下看。",
    [T_ST_NUMBER] = "第 %d 题",
    [T_ST_PRESS] = "  （按任意键看答案）",
    [T_ST_ANSWER] = "答：",
    [T_ST1_QUESTION] =
        "3.3.1 节为 journey 算出了哪三行数字？每行各是什么意思？请与你自己的运行结果核对。",
    [T_ST1_ANSWER] =
        "分数（journey 与每个词元的点积）、权重（分数的 softmax，总和为 1 的份额）和上下文\n"
        "向量（按这些份额混合所有词元）。输入是固定的，所以在任何机器上都是这些数字。",
    [T_ST2_QUESTION] = "用单位向量解释：点积为什么能衡量相似度？",
    [T_ST2_ANSWER] =
        "它累加的是两个方向重合的程度：方向相同得 1，垂直（毫无共同成分）得 0，相反得 -1。\n"
        "意思相近的词嵌入相近，点积就大。",
    [T_ST3_QUESTION] = "分数为什么要除以 sqrt(d_k)？请说出完整的推理链。",
    [T_ST3_ANSWER] =
        "d_k 大 -> 点积的离散程度按 sqrt(d_k) 增大 -> softmax 变成台阶，一个权重接近 1 ->\n"
        "导数几乎为 0 -> 学习停滞。除以 sqrt(d_k)，无论 d_k 多大，离散程度都回到 1。",
    [T_ST4_QUESTION] = "权重参数和注意力权重有什么区别？句子换了结尾，下面哪些数变了，为什么？",
    [T_ST4_ANSWER] =
        "权重参数（W_query 等）是训练学出来的，对任何输入都一样。注意力权重由每次前向根据\n"
        "输入现算，所以只有它变了。",
    [T_ST5_QUESTION] = "加了因果掩码之后，注意力权重必须满足哪两条？",
    [T_ST5_ANSWER] = "每一行的和仍为 1；对角线以上全部恰好为 0。",
    [T_ST6_QUESTION] = "先 softmax，再掩码，再归一化：未来参与过 softmax，为什么不会泄露？",
    [T_ST6_ANSWER] =
        "未来只进入了公共的分母，重新归一化又把它约掉：剩下的恰好是只对允许的位置做的\n"
        "softmax。（不过在浮点运算中，极大的未来分数仍会使它出错，所以在 softmax 之前填\n"
        "-inf 更好。）",
    [T_ST7_QUESTION] = "切分的多头注意力为什么除以 sqrt(head_dim)，而不是 sqrt(d_out)？\n"
                       "（下面是 64 个查询和键，各 64 维，方差为 1。）",
    [T_ST7_ANSWER] =
        "每个分数是 head_dim 个乘积之和，离散程度约为 sqrt(head_dim) = 8。除以 8 得 1；\n"
        "除以 sqrt(768) = 27.7，权重就过于平均了。",
    [T_ST8_QUESTION] = "transpose 之后 view 为什么失败？contiguous() 做了什么？",
    [T_ST8_ANSWER] =
        "transpose 只交换步长，内存原封不动；于是 view 想并在一起的数在内存里不相邻，只好\n"
        "拒绝。contiguous() 按新的次序复制一份，之后 view 就合法了。",
    [T_ST9_QUESTION] = "说出包装器与切分版多头注意力的三点区别。",
    [T_ST9_ANSWER] =
        "1. 切分版最后有 out_proj 来混合各头，包装器没有。\n"
        "2. 切分版的各头平分 d_out，除以 sqrt(head_dim)；包装器的每个头除以 sqrt(d_out)。\n"
        "3. 切分版为所有头只投影一次：3 个矩阵，而不是 3 * H 个。\n"
        "所以同样 d_out = 2，切分版得 2 列，包装器得 4 列。",
    [T_ST10_QUESTION] =
        "d_out = 2、2 个头时，MultiHeadAttention 的输出是什么形状？GPT-2 规模下呢？\n"
        "后者为什么重要？",
    [T_ST10_ANSWER] =
        "(2, 6, 2)；输入 (2, 8, 768) 时输出也是 (2, 8, 768)。进出形状相同，块就可以层层\n"
        "叠加，GPT-2 就叠了 12 层。",
    // ---- glossary
    [T_GLO_TITLE] = "本章术语",
    [T_GLO_SELF_ATTENTION] = "自注意力 self-attention",
    [T_GLO_SELF_ATTENTION_IS] = "  序列的每个位置都可以从同一序列的任何位置取内容。",
    [T_GLO_CONTEXT_VECTOR] = "上下文向量 context vector",
    [T_GLO_CONTEXT_VECTOR_IS] = "  一个词元的新向量：把所有词元交出的内容按权重混合而成。",
    [T_GLO_SCORE] = "注意力分数 attention score",
    [T_GLO_SCORE_IS] = "  查询与键的点积，还没有经过 softmax。",
    [T_GLO_WEIGHT] = "注意力权重 attention weight",
    [T_GLO_WEIGHT_IS] = "  分数经 softmax 之后的值：一行里总和为 1 的份额，每个输入都要重新计算。",
    [T_GLO_PARAMETER] = "权重参数 weight parameter",
    [T_GLO_PARAMETER_IS] = "  训练会改变的数，例如 W_query 的元素；对任何输入都一样。",
    [T_GLO_QUERY] = "查询 query",
    [T_GLO_QUERY_IS] = "  词元在找什么。",
    [T_GLO_KEY] = "键 key",
    [T_GLO_KEY_IS] = "  凭什么能找到这个词元。",
    [T_GLO_VALUE] = "值 value",
    [T_GLO_VALUE_IS] = "  找到之后，词元交出的内容。",
    [T_GLO_SCALED] = "缩放点积注意力 scaled dot-product attention",
    [T_GLO_SCALED_IS] = "  公式：softmax(Q K^T / sqrt(d_k)) V。",
    [T_GLO_CAUSAL] = "因果（掩码）注意力 causal attention",
    [T_GLO_CAUSAL_IS] = "  softmax 之前把后面位置的分数填成 -inf，它们的权重为 0。",
    [T_GLO_BUFFER] = "缓冲区 buffer",
    [T_GLO_BUFFER_IS] = "  属于模块但不参与训练的张量，例如掩码。",
    [T_GLO_DROPOUT] = "随机丢弃 dropout",
    [T_GLO_DROPOUT_IS] = "  训练时把比例为 p 的权重置 0，其余除以 1 - p。",
    [T_GLO_HEAD] = "头 head",
    [T_GLO_HEAD_IS] = "  一套自带查询、键、值的注意力；几个头并排运行。",
    [T_GLO_HEAD_DIM] = "头维度 head_dim",
    [T_GLO_HEAD_DIM_IS] = "  一个头的查询和键有几维，等于 d_out / num_heads；分数除以它的平方根。",
    [T_GLO_BATCHED] = "批量矩阵乘法 batched matrix product",
    [T_GLO_BATCHED_IS] = "  只乘最后两维，对前面各维重复：一次调用算完所有的头。",
    [T_GLO_OUT_PROJ] = "输出投影 out_proj",
    [T_GLO_OUT_PROJ_IS] = "  最后一个线性层 (d_out, d_out)：让各个头得以混合。",
    // ---- trace
    [T_TRACE_TITLE] = "一次前向的全部中间结果",
    [T_TRACE_INTRO] = "%s，种子 %u。每一项依次是：名称、数据类型、形状、步长（以元素计）、数值。\n"
                      "步长是下标加一时在内存里要走多远；转置过的张量一眼就能看出来。",
    [T_TRACE_MEANING] =
        "\n"
        "这些中间结果是按定义另行计算的；输出本身来自计算引擎，有没有 trace 都逐位相同。",
    // ---- training
    [T_TRAIN_TITLE] = "两个头学会往两处看",
    [T_TRAIN_INTRO] =
        "随机词元，词表大小 %d，序列长度 %d。在每个位置上，模型要说出两个词元：往前一位的，\n"
        "和往前三位的。它有可学习的词元嵌入和位置嵌入（%d 维）、一个因果多头注意力和一个\n"
        "线性读出层；除了注意力，没有别的东西能在位置之间搬运信息。\n"
        "\n"
        "两个同样宽度的模型从种子 %d 出发，用同样的数据并排训练：一个有两个头，一个只有\n"
        "一个。AdamW %d 步（学习率 0.01），每步 %d 条新的随机序列。准确率用训练中没见过的\n"
        "序列测量；瞎猜只能对一成。",
    [T_TRAIN_BEFORE] = "训练之前",
    [T_TRAIN_STEPS] = "训练",
    [T_TRAIN_AFTER] = "训练之后",
    [T_TRAIN_ROW] = "  第 %4d 步   损失，两个头：%.4f   一个头：%.4f",
    [T_TRAIN_TWO_HEADS] = "\n"
                          "两个头：答对 %.1f %%（往前一位 %.1f %%，往前三位 %.1f %%）",
    [T_TRAIN_ONE_HEAD] = "\n"
                         "一个头：答对 %.1f %%（往前一位 %.1f %%，往前三位 %.1f %%）",
    [T_TRAIN_TWO_SOLVE] = "两个头：答对超过 95 %%",
    [T_TRAIN_ONE_CANNOT] = "一个头：答对不到 75 %%",
    [T_TRAIN_MEANING] =
        "\n"
        "两个头各自找到了要看的位置：一个往前看一步，一个往前看三步。没有人指定过，是梯度\n"
        "教会的。（第 0 到 2 行前面没有三个词元，没有出题。）只有一个头时，两个位置只能挤在\n"
        "同一行权重里，输出是两个词元的混合，而混合物说不清哪个词元来自哪里：它知道是哪两\n"
        "个，先后却只能猜。它的损失停在 ln 2 = 0.69 附近，正是抛硬币的代价。",
    [T_TRAIN_PROGRESS] = "第 %lld 步，共 %lld 步，损失 %.4f 与 %.4f，还需 %.0f 秒",
    [T_TRAIN_STOPPED] = "  在第 %lld 步之后停下；状态存入 %s（用 --resume 继续）",
    [T_TRAIN_RESUMED] = "  从第 %lld 步之后继续，状态取自 %s",
    [T_LEAK_TITLE] = "没有掩码会泄露什么",
    [T_LEAK_INTRO] =
        "在词表大小为 %d 的随机词元上预测下一个词元。前面的词元对下一个毫无提示，所以\n"
        "老实的模型损失不可能低于 ln(词表大小) = %.4f。两个模型从种子 %d 出发，用同样的\n"
        "数据训练：一个没有因果掩码，一个有。横条的长度表示损失。",
    [T_LEAK_HEADER] = "   步数  没有掩码                      有掩码",
    [T_LEAK_WEIGHTS] = "没有掩码的模型在看哪里：右边一格，也就是答案本身",
    [T_LEAK_READS] = "没有掩码：损失低于 0.05，它在抄答案",
    [T_LEAK_CANNOT] = "有掩码：损失与 ln(词表大小) = %.4f 相差不到 0.1",
    [T_LEAK_MEANING] =
        "\n"
        "损失降得好得出奇，往往就是泄露的信号。这样的模型一到自己写作就毫无用处：那时下一个\n"
        "词元还不存在，没有答案可抄。",
    // ---- figures
    [T_FIG_NONE] = "本程序编译时没有 cairo，画不了图。请安装 libcairo2-dev 后重新编译。",
    [T_FIG_WRITTEN] = "  %s",
    [T_FIG_OTHER_LABELS] = "插图改用英文标注",
    [T_FIG_TITLE] = "本章插图",
    [T_FIG_1] = "简单自注意力：六个词元的注意力权重（每行和为 1）",
    [T_FIG_2] = "一个查询、八个键，d_k = 64，缩放前后（种子 %d）",
    [T_FIG_2_RAW] = "softmax(分数)",
    [T_FIG_2_SCALED] = "softmax(分数 / sqrt(64))",
    [T_FIG_2_VALUE] = "注意力权重",
    [T_FIG_3] = "因果掩码前后的注意力权重",
    [T_FIG_3_BEFORE] = "没有掩码：每个词元看得到整句",
    [T_FIG_3_AFTER] = "有掩码：j > i 为 0，每行重新归一化",
    [T_FIG_QUERY] = "查询",
    [T_FIG_KEY] = "键",
};
