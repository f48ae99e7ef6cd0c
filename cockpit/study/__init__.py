"""Studies: plan, rounds, runner, verdicts and results."""
