"""Muon for the matrices, AdamW for the rest, both in float32.

Muon replaces a matrix's momentum by the nearest orthogonal one. torch's own works in bfloat16,
which processors like this one do hundreds of times slower than float32.
"""

from collections import defaultdict
from functools import partial

import torch
from torch import Tensor, nn

from training.ranks import Ranks
from training.settings import PhaseSettings


def orthogonalise(matrices: Tensor, rounds: int = 5) -> Tensor:
    """Approximate U Vᵀ of each matrix's singular value decomposition. (n, rows, columns)

    Newton-Schulz iterations; singular values come close to 1, not more.
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised. Parameters of one shape are worked on together."""

    def __init__(
        self,
        params: list[nn.Parameter],
        lr: float,
        momentum: float = 0.95,
        ranks: Ranks | None = None,
    ) -> None:
        self.ranks = ranks or Ranks()
        groups: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
        for param in params:
            groups[param.shape].append(param)
        defaults = {"lr": lr, "momentum": momentum}
        super().__init__([{"params": same} for same in groups.values()], defaults)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override] # never has a closure  # noqa: ARG002
        for group in self.param_groups:
            params, momentum = group["params"], group["momentum"]
            grads = torch.stack([param.grad for param in params])  # (n, rows, columns)
            state = self.state[params[0]]
            if "momentum" not in state:
                state["momentum"] = torch.zeros_like(grads)
            state["momentum"].lerp_(grads, 1 - momentum)
            update = self._orthogonalised(grads.lerp_(state["momentum"], momentum))
            scale = max(1.0, update.shape[-2] / update.shape[-1]) ** 0.5
            for param, change in zip(params, update, strict=True):
                param.add_(change, alpha=-group["lr"] * scale)

    def _orthogonalised(self, matrices: Tensor) -> Tensor:
        """Orthogonalise this process's share of the matrices, and get the others' shares."""
        mine = slice(self.ranks.rank, None, self.ranks.world)
        update = torch.zeros_like(matrices)
        update[mine] = orthogonalise(matrices[mine])
        return self.ranks.sum_(update)


def make_optimizers(
    model: nn.Module, phase: PhaseSettings, ranks: Ranks
) -> list[torch.optim.Optimizer]:
    """One optimizer for the matrices inside the layers, one for embeddings, one for the rest."""
    matrices, embeddings, rest = [], [], []
    for name, param in model.named_parameters():
        if ".layers." in name and param.ndim == 2:
            matrices.append(param)
        elif "embed_tokens" in name:
            embeddings.append(param)
        else:
            rest.append(param)
    adam = partial(torch.optim.AdamW, betas=(0.9, 0.98), weight_decay=0.0)
    return [
        Muon(matrices, lr=phase.matrix_rate, ranks=ranks),
        adam(embeddings, lr=phase.embedding_rate),
        adam(rest, lr=phase.other_rate),
    ]
