"""The admission webhook: workloads that name a model version are let in by what stands approved."""
