"""What records say about each other: regret, odds, mixtures, fronts, simple codes beside them. No torch."""

from prequential.measure.chance import bootstrap_best
from prequential.measure.comparable import regret
from prequential.measure.fronts import pareto_front
from prequential.measure.mixing import Mixture, mixture

__all__ = ["Mixture", "bootstrap_best", "mixture", "pareto_front", "regret"]
