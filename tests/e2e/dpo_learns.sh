# DPO on pairs of a word's letters in order and in reverse: from chance to above 0.95 on pairs it never saw; the first
# loss is ln 2; the reference is computed once; and an interrupted run ends where the uninterrupted one ends.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/e2e/runs.sh"
printf 'abcdefgh\n' >corpus.txt
run tokenizer --vocab-size 260 tok corpus.txt
expect 0
write_config tiny.json 260
# Letters in alphabetical order against the reverse, behind the word: made by awk from a fixed seed.
awk 'BEGIN {
    srand(7)
    for (i = 0; i < 700; i++) {
        n = 2 + int(rand() * 4); word = ""; split("", count)
        for (k = 0; k < n; k++) { c = int(rand() * 8); word = word substr("abcdefgh", c + 1, 1); count[c]++ }
        up = ""; down = ""
        for (c = 0; c < 8; c++) for (k = 0; k < count[c]; k++) { l = substr("abcdefgh", c + 1, 1); up = up l; down = l down }
        if (up != down) printf "{\"prompt\": \"%s>\", \"chosen\": \"%s\", \"rejected\": \"%s\"}\n", word, up, down
    }
}' >pairs.jsonl

cat >tiny.yaml <<'END'
dpo: {max_num_epochs: 100, max_num_steps: 60, val_period: 0, val_batches: 0, val_global_batch_size: 64,
      val_at_end: true, reference_policy_kl_penalty: 0.1}
policy:
  init: random
  model_config: tiny.json
  tokenizer: {name: tok, chat_template: null}
  train_global_batch_size: 32
  max_total_sequence_length: 16
  sequence_packing: {train_mb_tokens: 1024}
  optimizer: {kwargs: {lr: 1.0e-2, weight_decay: 0.0, eps: 1.0e-8}}
data:
  train: {data_path: pairs.jsonl, split_validation_size: 0.2}
checkpointing: {save_period: 100}
END

metric() { # FILE STEP AXIS TAG, the last such record
    sed -n "s/.*\"step\":$2,\"axis\":\"$3\".*\"$4\":\([-0-9.e]*\).*/\1/p" "$1" | tail -n 1
}
for precision in bfloat16 float32; do
    "$TEMPER" train --progress plain tiny.yaml run.dir=$precision policy.precision=$precision >out 2>err ||
        fail "$precision: training failed"
    grep -q "pairs: computed" out || fail "$precision: the reference was not computed"
    before=$(metric $precision/metrics.jsonl 0 validation validation-default.accuracy)
    after=$(metric $precision/metrics.jsonl 60 validation validation-default.accuracy)
    first=$(metric $precision/metrics.jsonl 1 train train.loss)
    echo "$precision: first loss $first, held-out accuracy $before -> $after"
    awk -v x="$first" 'BEGIN { exit !(x > 0.6931466 && x < 0.6931478) }' || fail "$precision: the first loss is $first"
    awk -v x="$before" 'BEGIN { exit !(x < 0.7) }' || fail "$precision: accuracy before is $before already"
    awk -v x="$after" 'BEGIN { exit !(x > 0.95) }' || fail "$precision: accuracy after is $after"
done

# The reference's log-probabilities are kept; rewards are reported with and without beta.
"$TEMPER" train --progress plain tiny.yaml run.dir=again dpo.max_num_steps=2 >out 2>err || fail "training again failed"
grep -q "pairs: from the cache" out || fail "the reference was computed twice"
# ... under a key that knows what config.json, the passes and whoever computes make of the same weights.
sed 's/"rms_norm_eps": *[0-9.e+-]*,//; s/{/{"rms_norm_eps": 0.01,/' tiny.json >turned.json
for change in policy.model_config=turned.json policy.compile_mode=none engine.backend=ref \
    "engine.plugins=[$BUILD/examples/libpass.so]"; do
    "$TEMPER" train --progress plain tiny.yaml run.dir="${change%%=*}" dpo.max_num_steps=1 "$change" >out 2>err ||
        fail "$change: training failed"
    grep -q "pairs: computed" out || fail "$change: the reference of another model was used"
    first=$(metric "${change%%=*}/metrics.jsonl" 1 train train.loss)
    awk -v x="$first" 'BEGIN { exit !(x > 0.6931466 && x < 0.6931478) }' || fail "$change: the first loss is $first"
done
plain=$(metric again/metrics.jsonl 2 train dpo.margin)
scaled=$(metric again/metrics.jsonl 2 train dpo.margin_times_beta)
awk -v a="$plain" -v b="$scaled" 'BEGIN { exit !(a != 0 && b / a > 0.0999 && b / a < 0.1001) }' ||
    fail "margins $plain and $scaled do not differ by beta"

# Interrupted and resumed.
STEPS=12
"$TEMPER" train --quiet tiny.yaml run.dir=whole dpo.max_num_steps=12 checkpointing.save_period=3 >out 2>err ||
    fail "the uninterrupted run failed"
"$TEMPER" train --quiet tiny.yaml run.dir=part dpo.max_num_steps=6 checkpointing.save_period=3 >out 2>err ||
    fail "the first part failed"
rm -f cache/temper/*.reference
"$TEMPER" train --quiet tiny.yaml run.dir=part dpo.max_num_steps=12 checkpointing.save_period=3 --resume >out 2>err ||
    fail "resuming failed"
same_end whole part
finish
