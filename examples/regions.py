"""One command over thirteen regions, at once: what a model would otherwise ask for thirteen times.

Run it with `keryx exec examples/regions.py`. The command is a stand-in for a cloud's own tool; a
region that fails is reported and spoils nothing for the others.
"""

from keryx_tools import finish, parallel, terminal

REGIONS = (
    *("us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1", "sa-east-1"),
    *("eu-west-1", "eu-west-2", "eu-central-1", "eu-north-1"),
    *("ap-south-1", "ap-southeast-1", "ap-northeast-1"),
)

# Stands for `cloud instances list --region REGION --count`.
COMMAND = "sleep 0.2; echo {region} | cksum | cut -c1-2"

results = parallel(terminal, [COMMAND.format(region=region) for region in REGIONS], limit=13)
counts = {
    region: int(result["output"])
    for region, result in zip(REGIONS, results)
    if not isinstance(result, Exception)
}
for region, count in sorted(counts.items(), key=lambda item: -item[1]):
    print(f"{region:<16} {count:>3} instances")
print(f"{len(counts)} of {len(REGIONS)} regions, {sum(counts.values())} instances")
finish(counts)
