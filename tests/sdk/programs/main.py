"""What every language does: see tests/tests/sdk."""

import os
from typing import Callable

import planets
import quakes


def refused(what: str, named: str, call: Callable[[], object]) -> None:
    try:
        call()
    except (quakes.FarthingError, planets.FarthingError) as error:
        code = error.code if isinstance(error, (quakes.NodeError, planets.NodeError)) else ""
        print(what, code, str(error.charged).lower(), str(named in str(error)).lower())
        return
    raise SystemExit(f"{what}: no error")


# docs: begin
client = quakes.Client()  # CONSUMER_SECRET and FARTHING_CA_FILE are set
answer = client.recent_earthquakes(limit=3)
for event in answer.value.features:
    print(event.properties.place, event.properties.mag)
print(f"paid {answer.charged} USDC, receipt {answer.receipt}")
# docs: end
first = answer.value.features[0]
print("recent", len(answer.value.features), first.id, first.properties.time, round((first.properties.mag or 0) * 10), answer.charged)

many = quakes.Client(base_url=os.environ["DROPPING_URL"]).recent_earthquakes(limit=40)
print("again", len(many.value.features), many.charged)

refused("refused", "limit", lambda: client.recent_earthquakes(limit=0))
refused("budget", "", lambda: quakes.Client(max_price="0.001").recent_earthquakes())
refused("untrusted", "", lambda: quakes.Client(ca_file=os.environ["WRONG_CA_FILE"]).recent_earthquakes())

stars = planets.Client()
found = stars.planets(discovery_method="Transit", limit=2)
print("planets", len(found.value), found.value[0].name, found.value[0].discovery_year, found.charged)
many_planets = planets.Client(base_url=os.environ["DROPPING_PLANETS_URL"]).planets(limit=40)
print("planets-again", len(many_planets.value), many_planets.charged)
refused("planets-refused", "fields", lambda: stars.planets(fields="nothing"))
refused("planets-budget", "", lambda: planets.Client(max_price="0.001").planets())
refused("planets-untrusted", "", lambda: planets.Client(ca_file=os.environ["WRONG_CA_FILE"]).planets())
chosen = stars.call("GET", "/planets", {"limit": 1, "fields": ["name", "discoveryYear"]})
print("chosen", len(chosen.value), len(chosen.value[0]), chosen.charged)
