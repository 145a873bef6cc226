"""Recurrent networks, recommendation models, graph networks, and other small classics."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import nn
from torch.nn import functional

from .rows import Model

if TYPE_CHECKING:
    from collections.abc import Callable


class Tagger(nn.Module):
    """Tokens to tags by a recurrent network."""

    def __init__(self, cell: type[nn.Module], **values: Any) -> None:
        super().__init__()
        self.embed = nn.Embedding(96, 16)
        self.cell: Any = cell(16, 24, num_layers=2, batch_first=True, **values)
        self.head = nn.LazyLinear(7)
        self(torch.zeros(1, 2, dtype=torch.int64))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits of each token."""
        return self.head(self.cell(self.embed(tokens))[0])


class Translator(nn.Module):
    """A recurrent encoder and a decoder that attends to it."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(96, 16), nn.Embedding(96, 16)
        self.encoder = nn.GRU(16, 16, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(16, 32, num_layers=2, batch_first=True)
        self.head = nn.Linear(64, 96)

    def forward(self, tokens: torch.Tensor, decoded: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next tokens."""
        states, last = self.encoder(self.source(tokens))
        first = last.transpose(0, 1).reshape(1, tokens.shape[0], 32).repeat(2, 1, 1)
        made, _ = self.decoder(self.target(decoded), first)
        weights = (made @ states.transpose(1, 2)).softmax(-1)
        return self.head(torch.cat([made, weights @ states], -1))


class ImageRecurrence(nn.Module):
    """A convolutional LSTM of two layers over the frames of a video."""

    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.ModuleList((nn.Conv2d(3 + 8, 32, 3, padding=1), nn.Conv2d(16, 32, 3, 1, 1)))

    def forward(self, video: torch.Tensor) -> torch.Tensor:
        """Return the last hidden state."""
        zeros = torch.zeros(video.shape[0], 8, *video.shape[3:])
        states = [(zeros, zeros), (zeros, zeros)]
        for frame in video.unbind(1):
            x = frame
            for k, gates in enumerate(self.gates):
                hidden, cell = states[k]
                i, f, o, g = gates(torch.cat([x, hidden], 1)).chunk(4, 1)
                cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
                x = o.sigmoid() * cell.tanh()
                states[k] = (x, cell)
        return states[-1][0]


class Interactions(nn.Module):
    """Dense features and embeddings with products of all pairs (DLRM)."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(50, 8, mode="sum") for _ in range(3))
        self.bottom, self.top = _mlp(6, 16, 8), _mlp(8 + 6, 16, 1)

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        """Return the probability of a click."""
        x = self.bottom(dense)
        fields = [x, *(bag(sparse[:, k]) for k, bag in enumerate(self.bags))]
        stacked = torch.stack(fields, 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        row, column = torch.tril_indices(4, 4, -1)
        return self.top(torch.cat([x, products[:, row, column]], 1)).sigmoid()


class Factorization(nn.Module):
    """A factorization machine beside a deep network (DeepFM)."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.embed = nn.Embedding(90, 1), nn.Embedding(90, 8)
        self.deep = nn.Sequential(_mlp(32, 16, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, fields: torch.Tensor) -> torch.Tensor:
        """Return the probability of a click."""
        v = self.embed(fields)
        pairs = 0.5 * (v.sum(1) ** 2 - (v**2).sum(1)).sum(1, keepdim=True)
        return (self.linear(fields).sum(1) + pairs + self.deep(v.flatten(1))).sigmoid()


class Crossing(nn.Module):
    """Explicit crosses of features (DCN) and a wide linear part."""

    def __init__(self) -> None:
        super().__init__()
        self.cross = nn.ModuleList(nn.Linear(12, 12) for _ in range(3))
        self.deep, self.head = _mlp(12, 16, 16), nn.Linear(28, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return one score per row."""
        y = x
        for layer in self.cross:
            y = x * layer(y) + y
        return self.head(torch.cat([y, self.deep(x)], 1))


class Interest(nn.Module):
    """Attention of a candidate to a history of items (DIN)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(96, 8, padding_idx=0)
        self.score, self.head = _mlp(32, 16, 1), _mlp(16, 16, 1)

    def forward(self, history: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        """Return one score per row."""
        past, now = self.embed(history), self.embed(item)[:, None]
        now = now.expand_as(past)
        scores = self.score(torch.cat([past, now, past - now, past * now], -1)).squeeze(-1)
        weights = scores.masked_fill(history == 0, -1e9).softmax(-1)
        pooled = torch.einsum("bt,btd->bd", weights, past)
        return self.head(torch.cat([pooled, now[:, 0]], -1))


class NextItem(nn.Module):
    """Self-attention over items (SASRec)."""

    def __init__(self) -> None:
        super().__init__()
        self.items, self.positions = nn.Embedding(96, 16), nn.Embedding(64, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, items: torch.Tensor) -> torch.Tensor:
        """Return the scores of all items at each position."""
        length = items.shape[1]
        x = self.items(items) + self.positions(torch.arange(length))
        mask = torch.ones(length, length).triu(1).bool()
        return self.layers(x, mask=mask, is_causal=True) @ self.items.weight.T


class Neighbors(nn.Module):
    """Graph convolutions over a list of edges (GCN, GraphSAGE, GIN by the reduction)."""

    def __init__(self, reduction: str) -> None:
        super().__init__()
        self.reduction = reduction
        self.own = nn.ModuleList((nn.Linear(6, 16), nn.Linear(16, 16)))
        self.other = nn.ModuleList((nn.Linear(6, 16), nn.Linear(16, 16)))

    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return features of the nodes."""
        for own, other in zip(self.own, self.other, strict=True):
            sent = other(x)[source]
            index = target[:, None].expand_as(sent)
            zeros = torch.zeros(x.shape[0], sent.shape[1])
            kept = self.reduction in {"sum", "mean"}
            got = zeros.scatter_reduce(0, index, sent, self.reduction, include_self=kept)
            x = (own(x) + got).relu()
        return x


class NeighborAttention(nn.Module):
    """Graph attention over a list of edges (GAT)."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.ModuleList((nn.Linear(6, 16), nn.Linear(16, 16)))
        self.ends = nn.ModuleList((nn.Linear(16, 2), nn.Linear(16, 2)))

    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return features of the nodes."""
        nodes = x.shape[0]
        for project, ends in zip(self.project, self.ends, strict=True):
            h = project(x)
            score = ends(h)
            edge = functional.leaky_relu(score[source, 0] + score[target, 1], 0.2)
            top = torch.full((nodes,), -1e9).scatter_reduce(0, target, edge, "amax")
            weight = (edge - top[target]).exp()
            total = torch.zeros(nodes).index_add(0, target, weight)
            sent = h[source] * (weight / (total[target] + 1e-9))[:, None]
            x = functional.elu(torch.zeros(nodes, 16).index_add(0, target, sent) + h)
        return x


class PointCloud(nn.Module):
    """Shared layers over points, and a maximum of them (PointNet)."""

    def __init__(self) -> None:
        super().__init__()
        self.local = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(),
                                   nn.Conv1d(16, 32, 1), nn.BatchNorm1d(32), nn.ReLU())  # fmt: skip
        self.head = nn.Conv1d(64, 5, 1)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """Return the class of each point."""
        x = self.local(points)
        whole = x.amax(2, keepdim=True).expand_as(x)
        return self.head(torch.cat([x, whole], 1)).log_softmax(1)


class Radiance(nn.Module):
    """A field of colors and densities, and its integral along rays (NeRF)."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = _mlp(3 + 24, 32, 32), nn.Linear(32, 4)

    def forward(self, origin: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
        """Return the color of each ray."""
        depth = torch.linspace(0.1, 2.0, 12)
        points = origin[:, None] + depth[:, None] * direction[:, None]
        bands = points[..., None] * 2.0 ** torch.arange(4)
        code = torch.cat([points, bands.sin().flatten(2), bands.cos().flatten(2)], -1)
        made = self.head(self.body(code))
        alpha = 1 - torch.exp(-functional.softplus(made[..., 3]) * (depth[1] - depth[0]))
        ones = torch.ones(origin.shape[0], 1)
        passed = torch.cat([ones, (1 - alpha + 1e-10)[:, :-1]], 1).cumprod(1)
        return ((alpha * passed)[..., None] * made[..., :3].sigmoid()).sum(1)


class Segmenter(nn.Module):
    """An encoder and a decoder with connections between them (U-Net)."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList((_block(3, 8), _block(8, 16), _block(16, 32)))
        self.up = nn.ModuleList((nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)))
        self.join = nn.ModuleList((_block(32, 16), _block(16, 8)))
        self.head = nn.Conv2d(8, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the classes of each pixel."""
        kept = list[torch.Tensor]()
        for k, block in enumerate(self.down):
            x = block(x if k == 0 else functional.max_pool2d(x, 2))
            kept.append(x)
        for up, join, skipped in zip(self.up, self.join, kept[-2::-1], strict=True):
            x = join(torch.cat([up(x), skipped], 1))
        return self.head(x)


class Causal(nn.Module):
    """Dilated causal convolutions with gates and residuals (WaveNet, TCN)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv1d(1, 16, 1), nn.Conv1d(16, 8, 1)
        self.layers = nn.ModuleList(nn.Conv1d(16, 32, 2, dilation=2**k) for k in range(4))
        self.skips = nn.ModuleList(nn.Conv1d(16, 16, 1) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a distribution over 8 levels for each step."""
        x = self.first(x)
        total = torch.zeros_like(x)
        for layer, skip in zip(self.layers, self.skips, strict=True):
            padded = functional.pad(x, (layer.dilation[0], 0))
            a, b = layer(padded).chunk(2, 1)
            made = skip(a.tanh() * b.sigmoid())
            x, total = x + made, total + made
        return self.last(total.relu()).softmax(1)


class Basis(nn.Module):
    """Stacks of blocks that explain the rest of a series (N-BEATS)."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(_mlp(16, 32, 20) for _ in range(4))

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        """Return a forecast of four steps."""
        scale = series.abs().amax(1, keepdim=True).clamp_min(1e-3)
        rest, forecast = series / scale, torch.zeros(series.shape[0], 4)
        for block in self.blocks:
            back, front = block(rest).split((16, 4), 1)
            rest, forecast = rest - back, forecast + front
        return forecast * scale


class Autoencoder(nn.Module):
    """Convolutions to a mean and a variance, and transposed convolutions back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2),
                                     nn.Conv2d(8, 16, 4, 2, 1), nn.InstanceNorm2d(16))  # fmt: skip
        self.mean, self.spread = nn.Conv2d(16, 4, 1), nn.Conv2d(16, 4, 1)
        self.decoder = nn.Sequential(nn.ConvTranspose2d(4, 8, 4, 2, 1), nn.PReLU(),
                                     nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Tanh())  # fmt: skip

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the image, the mean, and the logarithm of the variance."""
        h = self.encoder(x)
        mean, spread = self.mean(h), self.spread(h).clamp(-5, 5)
        return self.decoder(mean + (0.5 * spread).exp() * noise), mean, spread


class Upscaler(nn.Module):
    """Convolutions, channel attention, and a pixel shuffle (EDSR, RCAN)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 16, 3, 1, 1), nn.Conv2d(16, 12, 3, 1, 1)
        self.body = nn.ModuleList(_block(16, 16) for _ in range(2))
        self.gates = nn.ModuleList(nn.Conv2d(16, 16, 1) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return an image of twice the height and width."""
        h = self.first(x)
        for block, gate in zip(self.body, self.gates, strict=True):
            made = block(h)
            h = h + made * gate(functional.adaptive_avg_pool2d(made, 1)).sigmoid()
        shown = functional.interpolate(x, scale_factor=2, mode="bicubic")
        return functional.pixel_shuffle(self.last(h), 2) + shown


class Warp(nn.Module):
    """A transformation that is predicted and applied to the image (spatial transformer)."""

    def __init__(self) -> None:
        super().__init__()
        self.locate = nn.Sequential(nn.Conv2d(1, 8, 5, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
                                    nn.Flatten(), nn.Linear(32, 6), nn.Tanh())  # fmt: skip
        self.classify = nn.Sequential(_block(1, 8), nn.AdaptiveMaxPool2d(1), nn.Flatten(),
                                      nn.Linear(8, 5))  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of five classes."""
        theta = self.locate(x).reshape(-1, 2, 3)
        grid = functional.affine_grid(theta, list(x.shape), align_corners=False)
        return self.classify(functional.grid_sample(x, grid, align_corners=False))


class Mixture(nn.Module):
    """Two layers of experts that a soft gate mixes, and a task head each (MMoE)."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(_mlp(12, 16, 8) for _ in range(3))
        self.gates = nn.ModuleList(nn.Linear(12, 3) for _ in range(2))
        self.heads = nn.ModuleList(_mlp(8, 8, 1) for _ in range(2))

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Return one score per task and row."""
        made = torch.stack([expert(x) for expert in self.experts], 1)
        return [
            head((gate(x).softmax(-1)[..., None] * made).sum(1)).sigmoid()
            for gate, head in zip(self.gates, self.heads, strict=True)
        ]


class Towers(nn.Module):
    """Two towers and the cosines of all pairs of their vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = _mlp(12, 16, 8), nn.EmbeddingBag(96, 8, mode="mean")

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """Return the cosine of each user and item."""
        first = functional.normalize(self.users(users), dim=-1)
        return first @ functional.normalize(self.items(items), dim=-1).T


def _mlp(*sizes: int) -> nn.Sequential:
    layers = [nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in pairwise(sizes)]
    layers[-1] = layers[-1][:1]
    return nn.Sequential(*layers)


def _block(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.SiLU(),
        nn.Conv2d(after, after, 3, padding=1), nn.GroupNorm(2, after), nn.ReLU(),
    )  # fmt: skip


def _row(
    family: str, name: str, make: Callable[[], nn.Module], sizes: Any = None, **inputs: str
) -> Model:  # fmt: skip
    return Model(name, family, make, inputs, sizes or {})


_GRAPH: Final = {"x": "f nodes 6", "source": "i3 edges", "target": "i3 edges"}
_NODES: Final = {"nodes": (5, 3, 8, 4), "edges": (12, 7, 20, 1)}

MODELS: Final = (
    _row("recurrent", "lstm", lambda: Tagger(nn.LSTM), tokens="i96 batch length"),
    _row("recurrent", "lstm_bidirectional", lambda: Tagger(nn.LSTM, bidirectional=True),
         tokens="i96 batch length"),
    _row("recurrent", "lstm_projected", lambda: Tagger(nn.LSTM, proj_size=8),
         tokens="i96 batch length"),
    _row("recurrent", "gru", lambda: Tagger(nn.GRU), tokens="i96 batch length"),
    _row("recurrent", "gru_bidirectional", lambda: Tagger(nn.GRU, bidirectional=True),
         tokens="i96 batch length"),
    _row("recurrent", "rnn", lambda: Tagger(nn.RNN), tokens="i96 batch length"),
    _row("recurrent", "gru_attention", Translator, tokens="i96 batch length",
         decoded="i96 batch target"),
    _row("recurrent", "conv_lstm", ImageRecurrence, video="f batch 3 3 height width",
         sizes={"height": (6, 5, 8, 4), "width": (5, 7, 4, 9)}),
    _row("recommendation", "dlrm", Interactions, dense="f batch 6", sparse="i50 batch 3 2"),
    _row("recommendation", "deepfm", Factorization, fields="i90 batch 4"),
    _row("recommendation", "dcn", Crossing, x="f batch 12"),
    _row("recommendation", "din", Interest, history="i96 batch length", item="i96 batch"),
    _row("recommendation", "sasrec", NextItem, items="i96 batch length"),
    _row("recommendation", "mmoe", Mixture, x="f batch 12"),
    _row("recommendation", "two_towers", Towers, users="f batch 12", items="i96 count 3",
         sizes={"count": (4, 2, 7, 1)}),
    _row("graph", "gcn", lambda: Neighbors("sum"), _NODES, **_GRAPH),
    _row("graph", "graph_sage_max", lambda: Neighbors("amax"), _NODES, **_GRAPH),
    _row("graph", "gin_mean", lambda: Neighbors("mean"), _NODES, **_GRAPH),
    _row("graph", "gat", NeighborAttention, _NODES, **_GRAPH),
    _row("points", "pointnet", PointCloud, points="f batch 3 count",
         sizes={"count": (20, 7, 33, 2)}),
    _row("points", "nerf", Radiance, origin="f batch 3", direction="f batch 3"),
    _row("segmentation", "unet", Segmenter, x="f batch 3 8*height 8*width"),
    _row("speech", "wavenet", Causal, x="f batch 1 length"),
    _row("time series", "nbeats", Basis, series="f batch 16"),
    _row("vision", "vae", Autoencoder, x="f batch 1 16*height 16*width",
         noise="f batch 4 4*height 4*width"),
    _row("super-resolution", "edsr", Upscaler, x="f batch 3 8*height 8*width"),
    _row("vision", "spatial_transformer", Warp, x="f batch 1 12 14"),
)  # fmt: skip
