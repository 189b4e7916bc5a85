"""Cost function B (Pasta §5.3): the sum over regions of the seconds of the slowest operator."""

from __future__ import annotations

from spark_regions.dag.region_plan import RegionPlan


class RegionSeconds:
    """
    Regions run one after the other, the operators of one side by side. Merging two regions never costs: the maximum of
    the union is one of the two maxima. So condition I holds; condition II does not.
    """

    name = "seconds"
    condition_one = True
    condition_two = False

    def cost(self, found: RegionPlan) -> float:
        return sum(region_seconds(found))


def region_seconds(found: RegionPlan) -> list[float]:
    """Seconds of each region: those of its slowest operator."""
    return [max(found.plan.operators[place].seconds for place in region) for region in found.regions]


model = RegionSeconds()
