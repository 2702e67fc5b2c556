"""What a cluster is told of models that are to be deployed: who names one, and what is said of it."""
