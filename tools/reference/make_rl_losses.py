"""Losses and gradients of DPO and GRPO as TRL computes them, on a tiny random model.

    make_rl_losses.py MODEL OUT.safetensors

MODEL is a folder that make_models.py wrote.  TRL's own loss methods are called on fixed
samples, without its trainers' loops: GRPOTrainer._compute_loss and
DPOTrainer._compute_loss.  OUT holds, in f32 and int32,

    grpo.{ids [S,T], lengths [S,2] (prompt, prompt + answer), old, ref [S,T], advantages [S]}
    dpo.{ids [2P,T], lengths [2P,2], ref [2P]}   rows: chosen, then rejected, in TRL's order
    <case>.loss [1], <case>.grad.<parameter>     for some parameters
    <case>.norm [1]                              norm of the whole gradient

old and ref are log-probabilities of token t at t, 0 in the prompt.  Cases: see below.
Everything runs on one thread from fixed seeds.  Versions: requirements.txt, trl 1.16.0.
"""

import argparse
import collections
import types

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM
from trl import DPOTrainer, GRPOTrainer

PARAMETERS = ["model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight", "model.norm.weight"]


def log_probs(model, ids, attention):
    logits = model(input_ids=ids, attention_mask=attention).logits.float()[:, :-1]
    return torch.log_softmax(logits, -1).gather(-1, ids[:, 1:, None]).squeeze(-1)


class Quiet:
    """An accelerator that does nothing but be asked."""

    device = torch.device("cpu")
    num_processes = 1
    sync_gradients = True

    def gather(self, x):
        return x

    gather_for_metrics = gather

    def reduce(self, x, reduction="sum"):
        return x


def grpo_trainer(model, **settings):
    t = object.__new__(GRPOTrainer)
    args = types.SimpleNamespace(delta=settings.pop("delta", None), use_bias_correction_kl=True,
                                 steps_per_generation=1, report_to=[])
    values = dict(model=model, args=args, accelerator=Quiet(), beta=0.0, epsilon_low=0.2, epsilon_high=0.2,
                  importance_sampling_level="token", loss_type="dapo", max_completion_length=16,
                  top_entropy_quantile=1.0, off_policy_mask_threshold=None, aux_loss_enabled=False, use_vllm=False,
                  current_gradient_accumulation_steps=1, _entropy_bonus_enabled=False,
                  _metrics={"train": collections.defaultdict(list), "eval": collections.defaultdict(list)})
    values.update(settings)
    for key, value in values.items():
        object.__setattr__(t, key, value)

    def per_token(model, ids, mask, keep, **_):
        logp = log_probs(model, ids, mask)[:, -keep:]
        return logp, torch.zeros_like(logp), None

    object.__setattr__(t, "_get_per_token_logps_and_entropies", per_token)
    return t


def dpo_trainer(model, kind, beta, smoothing):
    t = object.__new__(DPOTrainer)
    values = dict(model=model, args=types.SimpleNamespace(report_to=[]), accelerator=Quiet(), aux_loss_enabled=False,
                  ld_alpha=None, precompute_ref_logps=True, f_divergence_type="reverse_kl", loss_types=[kind],
                  loss_weights=[1.0], beta=beta, label_smoothing=smoothing, use_weighting=False,
                  _metrics={"train": collections.defaultdict(list), "eval": collections.defaultdict(list)},
                  _total_train_tokens=0)
    for key, value in values.items():
        object.__setattr__(t, key, value)
    return t


class WithLogProbs(torch.nn.Module):
    """The model with the log-probabilities of labels among its outputs, as TRL patches it."""

    def __init__(self, model):
        super().__init__()
        self.inner = model

    def forward(self, input_ids, attention_mask, labels, **_):
        logp = log_probs(self.inner, input_ids, attention_mask)
        kept = labels[:, 1:] != -100
        zero = torch.zeros(())
        found = types.SimpleNamespace(log_probs=torch.where(kept, logp, zero), loss=zero)
        found.is_top1 = kept
        for name in ("entropy", "mean_logits"):
            setattr(found, name, torch.zeros_like(logp))  # reported, not part of the loss
        return found


def gradients(model, case, loss, out):
    model.zero_grad()
    loss.backward()
    out[case + ".loss"] = loss.detach().reshape(1)
    norm = torch.sqrt(sum((p.grad.double() ** 2).sum() for p in model.parameters()))
    out[case + ".norm"] = norm.float().reshape(1)
    for name, p in model.named_parameters():
        if name in PARAMETERS:
            out[f"{case}.grad.{name}"] = p.grad.clone()
    print(f"{case:20} loss {loss.item():.8f}  norm {norm.item():.8f}")


def rows(rng, lengths, vocab):
    longest = max(n for _, n in lengths)
    ids = torch.zeros(len(lengths), longest, dtype=torch.long)
    for i, (_, n) in enumerate(lengths):
        ids[i, :n] = torch.randint(1, vocab, (n,), generator=rng)
    return ids


def make_grpo(model, out):
    """Prompts of one length, so that TRL's padding falls away; answers of several."""
    rng = torch.Generator().manual_seed(11)
    prompt, lengths = 5, [(5, 17), (5, 9), (5, 13), (5, 6)]
    ids = rows(rng, lengths, model.config.vocab_size)
    S, T = ids.shape
    mask = torch.tensor([[1 if t < n else 0 for t in range(T)] for _, n in lengths])
    with torch.no_grad():
        now = log_probs(model, ids, mask)
    noise = torch.randn(now.shape, generator=rng)
    old = now + 0.3 * noise
    ref = now + 0.5 * torch.randn(now.shape, generator=rng)
    advantages = torch.tensor([1.2, -0.7, 0.4, -1.5])
    answer = mask.clone()
    answer[:, :prompt] = 0
    wide = lambda x: torch.nn.functional.pad(x, (1, 0)) * answer
    out["grpo.ids"], out["grpo.lengths"] = ids.int(), torch.tensor(lengths).int()
    out["grpo.old"], out["grpo.ref"], out["grpo.advantages"] = wide(old), wide(ref), advantages
    inputs = dict(prompt_ids=ids[:, :prompt], prompt_mask=mask[:, :prompt], completion_ids=ids[:, prompt:],
                  completion_mask=mask[:, prompt:], advantages=advantages, old_per_token_logps=old[:, prompt - 1:],
                  ref_per_token_logps=ref[:, prompt - 1:], num_items_in_batch=mask[:, prompt:].sum())
    cases = {
        "grpo.token": dict(loss_type="dapo", epsilon_high=0.28),
        "grpo.sequence_mean": dict(loss_type="grpo"),
        "grpo.dual_clip": dict(loss_type="dapo", delta=1.5),
        "grpo.gspo": dict(loss_type="grpo", importance_sampling_level="sequence", epsilon_low=0.05, epsilon_high=0.05),
        "grpo.cispo": dict(loss_type="cispo", epsilon_high=1.25),
        "grpo.dr_grpo": dict(loss_type="dr_grpo"),
    }
    for name, settings in cases.items():
        gradients(model, name, grpo_trainer(model, **settings)._compute_loss(model, inputs), out)
    on_policy = {k: v for k, v in inputs.items() if k != "old_per_token_logps"}
    loss = grpo_trainer(model, loss_type="dapo", beta=0.1)._compute_loss(model, on_policy)
    gradients(model, "grpo.divergence", loss, out)


def make_dpo(model, out):
    rng = torch.Generator().manual_seed(12)
    lengths = [(4, 12), (6, 11), (4, 9), (6, 15)]  # chosen, chosen, rejected, rejected
    ids = rows(rng, lengths, model.config.vocab_size)
    T = ids.shape[1]
    mask = torch.tensor([[1 if t < n else 0 for t in range(T)] for _, n in lengths])
    answer = torch.tensor([[1 if first <= t < n else 0 for t in range(T)] for first, n in lengths])
    with torch.no_grad():
        now = (log_probs(model, ids, mask) * answer[:, 1:]).sum(1)
    ref = now + torch.tensor([-1.0, 2.0, 0.5, -1.5])
    out["dpo.ids"], out["dpo.lengths"], out["dpo.ref"] = ids.int(), torch.tensor(lengths).int(), ref
    inputs = dict(input_ids=ids, attention_mask=mask, completion_mask=answer, ref_chosen_logps=ref[:2],
                  ref_rejected_logps=ref[2:])
    patched = WithLogProbs(model).eval()
    for name, kind, beta, smoothing in [("dpo.sigmoid", "sigmoid", 0.3, 0.0), ("dpo.smoothed", "robust", 0.3, 0.0),
                                        ("dpo.ipo", "ipo", 0.3, 0.0)]:
        if kind == "robust":  # conservative DPO: TRL's sigmoid on both sides, mixed by the smoothing
            forward = dpo_trainer(patched, "sigmoid", 0.3, 0.0)._compute_loss(patched, dict(inputs), False)
            swapped = dict(inputs, input_ids=ids[[2, 3, 0, 1]], attention_mask=mask[[2, 3, 0, 1]],
                           completion_mask=answer[[2, 3, 0, 1]], ref_chosen_logps=ref[2:], ref_rejected_logps=ref[:2])
            back = dpo_trainer(patched, "sigmoid", 0.3, 0.0)._compute_loss(patched, swapped, False)
            gradients(model, name, 0.9 * forward + 0.1 * back, out)
        else:
            gradients(model, name, dpo_trainer(patched, kind, beta, smoothing)._compute_loss(patched, dict(inputs), False),
                      out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32, attn_implementation="eager")
    out = {}
    make_grpo(model, out)
    make_dpo(model, out)
    save_file({k: v.contiguous() for k, v in out.items()}, args.out)


if __name__ == "__main__":
    main()
