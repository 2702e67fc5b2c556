"""Starting the audits that registries ask for."""
