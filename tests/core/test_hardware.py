import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.core.errors import AccountingError, ConfigError
from goodput.core.hardware import (
    CHIPS,
    DTYPES,
    find_chip,
    match_chip,
    model_flops_utilization,
    normalise_dtype,
    peak_flops,
)

# Dense bf16 (fp16 before Ampere) TFLOP/s as other trainers' tables have them (torchtitan
# get_peak_flops, levanter, MaxText), typed in here independently of the product's table.
COMMON_TFLOPS = {
    "V100-SXM": 125,
    "V100-PCIe": 112,
    "T4": 65,
    "A100-SXM-80GB": 312,
    "A100-PCIe-40GB": 312,
    "A10": 125,
    "A10G": 70,
    "L4": 121,
    "L40S": 362,
    "RTX-4090": 165.2,
    "H100-SXM": 989,
    "H100-PCIe": 756,
    "H100-NVL": 835,
    "H200-SXM": 989,
    "GH200": 989,
    "B200": 2250,
    "B300": 2250,
    "GB200": 2500,
    "GB300": 2500,
    "MI250X-GCD": 191.5,
    "MI300X": 1307,
    "MI325X": 1307,
    "MI355X": 2500,
    "TPU-v4": 275,
    "TPU-v5e": 197,
    "TPU-v5p": 459,
    "TPU-v6e": 918,
    "TPU-v7x-chip": 2307,
    "Gaudi2": 432,
    "Gaudi3": 1835,
    "Trainium1": 190,
    "Trainium2": 667,
}

# (what the driver or framework says, the chip it is)
DEVICE_NAMES = [
    ("NVIDIA H100 80GB HBM3", "H100-SXM"),
    ("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-8f1c2a7e-0000)", "H100-SXM"),
    ("NVIDIA H100 PCIe", "H100-PCIe"),
    ("NVIDIA H100 NVL", "H100-NVL"),
    ("NVIDIA H200", "H200-SXM"),
    ("NVIDIA H200 NVL", "H200-NVL"),
    ("NVIDIA GH200 480GB", "GH200"),
    ("NVIDIA GH200 144G HBM3e", "GH200-144GB"),
    ("NVIDIA B200", "B200"),
    ("NVIDIA B300 SXM6 AC", "B300"),
    ("NVIDIA GB200", "GB200"),
    ("NVIDIA GB300", "GB300"),
    ("NVIDIA A100-SXM4-40GB", "A100-SXM-40GB"),
    ("NVIDIA A100-SXM4-80GB", "A100-SXM-80GB"),
    ("A100-SXM4-40GB", "A100-SXM-40GB"),
    ("NVIDIA A100-PCIE-40GB", "A100-PCIe-40GB"),
    ("NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"),
    ("NVIDIA A10G", "A10G"),
    ("NVIDIA A10", "A10"),
    ("NVIDIA L4", "L4"),
    ("NVIDIA L40S", "L40S"),
    ("Tesla T4", "T4"),
    ("Tesla V100-SXM2-16GB", "V100-SXM"),
    ("Tesla V100-SXM3-32GB", "V100-SXM"),
    ("Tesla V100-PCIE-32GB", "V100-PCIe"),
    ("NVIDIA GeForce RTX 4090", "RTX-4090"),
    ("AMD Instinct MI250X", "MI250X-GCD"),
    ("AMD Instinct MI300X", "MI300X"),
    ("AMD Instinct MI300X OAM", "MI300X"),
    ("AMD Instinct MI325X", "MI325X"),
    ("AMD Instinct MI355X", "MI355X"),
    ("TPU v4", "TPU-v4"),
    ("TPU v5 lite", "TPU-v5e"),
    ("TPU v5e", "TPU-v5e"),
    ("TPU v5", "TPU-v5p"),
    ("TPU v5p", "TPU-v5p"),
    ("TPU v6 lite", "TPU-v6e"),
    ("TPU7x", "TPU-v7x-core"),
    ("GAUDI2", "Gaudi2"),
    ("GAUDI3", "Gaudi3"),
    ("trn1", "Trainium1"),
    ("Trainium2", "Trainium2"),
]

NOT_A_KNOWN_CHIP = [
    "NVIDIA H100",  # SXM, PCIe and NVL differ by a third
    "NVIDIA H20",
    "NVIDIA L40",
    "NVIDIA H100 64GB HBM2",
    "NVIDIA A100-SXM-64GB",
    "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
    "GRID A100D-10C",
    "NVIDIA GeForce RTX 4090 D",
    "NVIDIA GeForce RTX 4090 Laptop GPU",
    "TPU v4 lite",
    "AMD Instinct MI250",
    "AMD Instinct MI300A",
    "cpu",
    "",
]


@pytest.mark.parametrize(("name", "tflops"), COMMON_TFLOPS.items())
def test_peaks_agree_with_the_tables_of_other_trainers(name: str, tflops: float) -> None:
    dtype = "bf16" if "bf16" in CHIPS[name].peak_flops else "fp16"
    assert peak_flops(name, dtype) == pytest.approx(tflops * 1e12, rel=0.008)


@pytest.mark.parametrize("name", CHIPS)
def test_ratios_between_formats_betray_a_sparse_figure(name: str) -> None:
    # Matrix units double from tf32 to 16 bits to 8 bits. A figure "with sparsity" breaks the ratio.
    peaks = CHIPS[name].peak_flops
    exempt = {"Gaudi3", "TPU-v4", "TPU-v5p", "TPU-v6e", "Trainium1"}  # fp8 or int8 at 16-bit rate
    if "tf32" in peaks and "Trainium" not in name:
        assert peaks["bf16"] / peaks["tf32"] == pytest.approx(2, rel=0.02)
    if "fp8" in peaks and name not in exempt:
        assert peaks["fp8"] / peaks["bf16"] == pytest.approx(2, rel=0.03)
    if "fp16" in peaks and "bf16" in peaks:
        assert peaks["fp16"] == peaks["bf16"]
    if "int8" in peaks and "fp8" in peaks and CHIPS[name].vendor == "AMD":
        assert peaks["int8"] == peaks["fp8"]


@pytest.mark.parametrize("name", CHIPS)
def test_every_row_is_complete(name: str) -> None:
    row = CHIPS[name]
    assert row.name == name
    assert row.source
    assert set(row.peak_flops) <= set(DTYPES)
    assert all(1e12 <= peak < 2e16 for peak in row.peak_flops.values())
    assert 16 << 30 <= row.memory_bytes <= 288 << 30
    assert 300e9 <= row.memory_bytes_per_s <= 8000e9
    assert find_chip(name) is row


def test_the_two_halves_of_a_package_make_the_package() -> None:
    for whole, half in (("MI250X-module", "MI250X-GCD"), ("TPU-v7x-chip", "TPU-v7x-core")):
        assert CHIPS[whole].memory_bytes == 2 * CHIPS[half].memory_bytes
        for dtype, peak in CHIPS[whole].peak_flops.items():
            assert peak == pytest.approx(2 * CHIPS[half].peak_flops[dtype])


@pytest.mark.parametrize(("device", "name"), DEVICE_NAMES)
def test_device_names_find_their_chip(device: str, name: str) -> None:
    found = match_chip(device)
    assert found is not None
    assert found.name == name
    assert find_chip(device) is found


@pytest.mark.parametrize("device", NOT_A_KNOWN_CHIP)
def test_names_that_do_not_say_which_chip_match_nothing(device: str) -> None:
    assert match_chip(device) is None


def test_every_chip_can_be_found_from_some_device_name() -> None:
    reachable = {name for _, name in DEVICE_NAMES}
    assert set(CHIPS) - reachable == {"MI250X-module", "TPU-v7x-chip"}  # no framework shows those


@given(st.text(max_size=40))
def test_any_text_as_a_device_name_is_answered(device: str) -> None:
    found = match_chip(device)
    assert found is None or found.name in CHIPS


def test_a_family_name_is_enough_where_all_its_members_agree() -> None:
    assert peak_flops("A100", "bf16") == 312e12
    with pytest.raises(ConfigError, match="A100-SXM-40GB, A100-SXM-80GB"):
        find_chip("A100")  # their memories differ


def test_a_family_whose_members_differ_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"H100-SXM \(989\.4\), H100-PCIe \(756\)"):
        peak_flops("H100", "bf16")
    with pytest.raises(ConfigError, match=r"MI250X-module \(383\), MI250X-GCD \(191\.5\)"):
        peak_flops("MI250X", "bf16")


@pytest.mark.parametrize(
    ("spelling", "dtype"),
    [
        ("torch.bfloat16", "bf16"),
        ("bf16-mixed", "bf16"),
        ("BF16", "bf16"),
        ("float16", "fp16"),
        ("half", "fp16"),
        ("torch.float8_e4m3fn", "fp8"),
        ("float32", "fp32"),
        ("tf32", "tf32"),
        ("double", "fp64"),
        ("mxfp4", "fp4"),
    ],
)
def test_dtype_spellings(spelling: str, dtype: str) -> None:
    assert normalise_dtype(spelling) == dtype


def test_unknown_names_say_what_is_near_and_what_exists() -> None:
    with pytest.raises(ConfigError, match=r"'H100-SMX'; nearest are .*H100-SXM"):
        peak_flops("H100-SMX", "bf16")
    with pytest.raises(ConfigError, match="known are V100-SXM"):
        peak_flops("????", "bf16")
    with pytest.raises(ConfigError, match="slice"):
        peak_flops("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "bf16")
    with pytest.raises(ConfigError, match=r"'bfloat61'; nearest are bfloat16"):
        peak_flops("B200", "bfloat61")
    with pytest.raises(ConfigError, match=r"no peak for dtype 'bf16' on T4; it has fp32, fp16"):
        peak_flops("T4", "bf16")


def test_mfu_of_a_known_run() -> None:
    # Llama 3 405B, table 4: 430 TFLOP/s per GPU on 8,192 H100 is printed as 43 % of the dense peak.
    done = 430e12 * 8192 * 10.0
    peak = peak_flops("H100-SXM", "bf16")
    assert model_flops_utilization(done, seconds=10.0, chips=8192, peak=peak) == pytest.approx(
        0.43, abs=0.005
    )


def test_mfu_over_one_hundred_per_cent_is_never_returned() -> None:
    # 90 % of an SXM module counted against the PCIe peak would print as 118 %.
    done = 0.9 * 989.4e12
    with pytest.raises(AccountingError, match=r"MFU = 117\.8% .*dense.*PCIe is not SXM"):
        model_flops_utilization(done, seconds=1, chips=1, peak=peak_flops("H100-PCIe", "bf16"))


def test_exactly_the_peak_is_one_even_when_rounding_says_otherwise() -> None:
    assert model_flops_utilization(312e12 * (1 + 5e-10), seconds=1, chips=1, peak=312e12) == 1.0


@given(
    fraction=st.floats(0, 1),
    seconds=st.floats(1e-6, 1e9),
    chips=st.integers(1, 10**6),
    name=st.sampled_from(sorted(CHIPS)),
)
def test_mfu_gives_back_the_fraction_of_peak(
    fraction: float, seconds: float, chips: int, name: str
) -> None:
    peak = next(iter(CHIPS[name].peak_flops.values()))
    done = fraction * peak * seconds * chips
    assert model_flops_utilization(done, seconds=seconds, chips=chips, peak=peak) == pytest.approx(
        fraction, abs=1e-9
    )


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_mfu_refuses_inputs_that_mean_nothing(value: float) -> None:
    with pytest.raises(ConfigError, match="seconds = "):
        model_flops_utilization(1.0, seconds=value, chips=1, peak=1e12)
    with pytest.raises(ConfigError, match="peak = "):
        model_flops_utilization(1.0, seconds=1.0, chips=1, peak=value)
    with pytest.raises(ConfigError, match="chips = "):
        model_flops_utilization(1.0, seconds=1.0, chips=0, peak=1e12)
    with pytest.raises(ConfigError, match="flops = "):
        model_flops_utilization(min(value, -1.0), seconds=1.0, chips=1, peak=1e12)


def test_the_table_loads_no_numpy() -> None:
    code = "import sys, goodput.core.hardware; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
