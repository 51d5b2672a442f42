"""Other job queues, each with the best settings that keep its promises and its tables durable."""
