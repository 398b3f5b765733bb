"""Learning: settings, formulas, optimizers and the learner that executes events."""
