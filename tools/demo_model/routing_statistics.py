"""How evenly the experts are used, and how often a token reuses the experts of the token before it."""
import numpy as np

from scoring import rounded


def routing_statistics(config, routes, smallest_gap):
    """routes: per window, per token, per MoE layer the list of chosen experts."""
    layers = list(range(config["first_k_dense_replace"], config["num_hidden_layers"]))
    counts = np.zeros((len(layers), config["num_experts"]), int)
    shared = []
    for route in routes:
        for token_route in route:
            for index, chosen in enumerate(token_route):
                counts[index, chosen] += 1
        shared.append([_mean_shared(route, index) for index in range(len(layers))])
    return {
        "over": "all tokens of the windows protocol",
        "layers": layers,
        "top_k": config["num_experts_per_token"],
        "counts": counts.tolist(),
        "max_load_over_mean": [rounded(row.max() / row.mean(), 4) for row in counts],
        "min_load_over_mean": [rounded(row.min() / row.mean(), 4) for row in counts],
        "mean_experts_shared_with_previous_token": [rounded(mean, 4) for mean in np.mean(shared, 0)],
        "smallest_router_gap": smallest_gap,
    }


def _mean_shared(route, index):
    """Experts of one layer that a token has in common with its predecessor, mean over a window."""
    return np.mean([len(set(before[index]) & set(after[index])) for before, after in zip(route, route[1:])])
