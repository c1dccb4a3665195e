import pytest
import torch
import torch.nn.functional as F

from trainer.losses import proto_nce
from trainer.methods.clusters import judge_clusterings


def test_a_random_clustering_is_a_part_of_the_gradient():
    """Against autograd through ProtoNCE's own terms, with the clusterings that are judged."""
    generator = torch.Generator().manual_seed(0)
    points = F.normalize(torch.randn(12, 5, generator=generator, dtype=torch.float64), dim=1)
    clusterings = []
    for clusters in (2, 3, 4):
        prototypes = F.normalize(torch.randn(clusters, 5, generator=generator, dtype=torch.float64), dim=1)
        phi = 0.1 + torch.rand(clusters, generator=generator, dtype=torch.float64)
        clusterings.append((prototypes, phi, (points @ prototypes.T).argmax(dim=1)))
    shuffled = torch.randperm(12, generator=generator)

    def gradient(used) -> tuple[float, torch.Tensor]:
        rows = points.clone().requires_grad_()
        prototypes, phi, assigned = zip(*used, strict=True)
        far = torch.zeros(1, 5, dtype=torch.float64)
        instance = proto_nce(rows, rows.detach(), far, (), (), ())
        loss = proto_nce(rows, rows.detach(), far, prototypes, assigned, phi) - instance
        loss.backward()
        return loss.item(), rows.grad

    judged = judge_clusterings(points, clusterings, shuffled)
    _, whole = gradient(clusterings)
    for index, (own, numbers) in enumerate(zip(clusterings, judged, strict=True)):
        bad = (own[0], own[1], own[2][shuffled])
        assert numbers["loss"] == pytest.approx(gradient([own])[0], abs=1e-9)
        assert numbers["random_loss"] == pytest.approx(gradient([bad])[0], abs=1e-9)
        _, other = gradient([*clusterings[:index], bad, *clusterings[index + 1 :]])
        cosine = F.cosine_similarity(whole.flatten(), other.flatten(), dim=0).item()
        assert numbers["random_cosine"] == pytest.approx(cosine, abs=1e-9)
        assert numbers["random_loss"] > numbers["loss"]
