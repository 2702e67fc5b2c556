"""A model of how Kubernetes and KEDA scale Proctor's pods, by the rules that the chart renders.

`rules` reads a ScaledObject, `hpa` and `keda` are the two controllers, `traces` what is asked for over a day, `asked`
the router's queue, `pods` a tier of pods, `day` plays a trace against them under a policy, `figures` and `plots` are
what is shown, `observed` holds a prediction against a real cluster's replicas, which `observe` records, and `sizing`
multiplies measured unit costs.
"""
