"""The ground floor: values and pure functions that every pillar stands on."""
