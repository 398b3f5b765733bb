"""Several predictors, one code: networks, averages of one network and simple codes, mixed label by label."""
