"""A tenant cannot make as many spans as it likes."""

from carteiro.policy.span_budget import SpanBudget, SpanLimits


def test_one_tenant_leaves_spans_to_the_others() -> None:
    budget = SpanBudget(SpanLimits(of_all=10, of_one=4))

    assert [budget.take("acme", 2, now=0.0) for _ in range(3)] == [True, True, False]
    assert budget.take("brasa", 4, now=0.0)
    assert not budget.take("brasa", 1, now=0.0)
    assert budget.take("casa", 2, now=0.0)
    assert not budget.take("dedo", 1, now=0.0)  # none are left for anybody


def test_each_minute_begins_anew() -> None:
    """A list that is larger than what is left takes nothing."""
    budget = SpanBudget(SpanLimits(of_all=10, of_one=4))
    assert not budget.take("acme", 5, now=5.0)
    assert budget.take("acme", 4, now=5.0)

    assert not budget.take("acme", 1, now=64.9)
    assert budget.take("acme", 4, now=65.0)
