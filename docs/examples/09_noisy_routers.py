"""Does noise raise the score?

In the router-worker audit (arXiv 2603.21636) a model answers from what routers pass on, and noisy routers should not
make it better. Each setting is tested against the clean baseline on the same questions, and corrected for how many
settings there are: with 18 of them, one gain in 20 looks significant by luck. The settings in which a model stopped
answering are invalid and not a drop.
"""

from proctor import noise_summary, read_router_table

summary = noise_summary(read_router_table("logs/noisy_routers.csv"))

for model in summary.models:
    print(
        f"{model.model}: above the baseline in {model.violations} of {model.settings} settings, "
        f"mean gain {100 * model.mean_gain:+.1f} points, smallest p after Holm {model.holm_min_p:.2g}, "
        f"{model.invalid_settings} invalid"
    )
for setting in summary.significant:
    print(f"survives Holm over the table: {setting.model} with {setting.router_count} routers")

# Prints:
# falls-silent: above the baseline in 0 of 6 settings, mean gain -1.8 points, smallest p after Holm 1, 2 invalid
# remembers: above the baseline in 6 of 6 settings, mean gain +9.3 points, smallest p after Holm 7.2e-05, 0 invalid
# steady: above the baseline in 0 of 6 settings, mean gain -1.9 points, smallest p after Holm 1, 0 invalid
# survives Holm over the table: remembers with 4 routers
# survives Holm over the table: remembers with 5 routers
# survives Holm over the table: remembers with 6 routers
