"""The two bases that every config record stands on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]
Auto = Literal["auto"]


class Strict(BaseModel):
    """Frozen, and unknown keys are errors."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )


class AlgorithmConfig(Strict):
    """What every algorithm asks; each adds its own fields in algorithms/NAME/config.py."""

    name: str
    """Which algorithm: `ppo`, `dqn`, `impala`, or `module:attribute` of an Algorithm record."""
    gamma: Fraction = 0.99
    """Discount per step; 1 means undiscounted."""
    learning_rate: Positive = 3e-4
    """Step size of the optimiser at the start."""
    unroll_length: Count = 32
    """Steps of every environment in one unroll; longer means fewer hand-overs and more lag."""
    max_grad_norm: Positive = 0.5
    """Gradients are scaled down to this global norm."""

    @classmethod
    def fields_by_name(cls) -> dict[str, Any]:
        return dict(cls.model_fields)
