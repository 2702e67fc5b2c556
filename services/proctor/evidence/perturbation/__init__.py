"""The perturbation channel: canonical wording against admitted rewordings. One estimator or test a module."""
