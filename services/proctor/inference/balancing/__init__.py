"""One model on several servers: how requests are spread over them, which are left alone, and how they are found."""
