"""What the dashboards of the chart show, a module each."""
