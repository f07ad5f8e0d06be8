"""Chips of AMD, Google, Intel and AWS. Their documents print dense figures; none is halved."""

from typing import Final

from goodput.core.hardware.chip import Chip, chip, tera

_CDNA3_PEAKS = tera(
    fp64=163.4, fp32=163.4, tf32=653.7, bf16=1307.4, fp16=1307.4, fp8=2614.9, int8=2614.9
)
_TPU = "Google Cloud TPU documentation, system architecture of "
_NEURON = "AWS Neuron documentation 2.29, architecture of "
_CORES = "a framework shows each NeuronCore as a device: give the number of chips, not of devices"

AMD: Final[tuple[Chip, ...]] = (
    chip(
        "MI250X-module",
        family="MI250X",
        vendor="AMD",
        peaks=tera(fp64=95.7, fp32=95.7, bf16=383.0, fp16=383.0, int8=383.0),
        memory_gib=128,
        memory_gb_per_s=3276.8,
        device=r"(?!)",
        source="AMD Instinct MI250X data sheet (dense, matrix)",
        note="both halves; frameworks show its two halves, MI250X-GCD",
    ),
    chip(
        "MI250X-GCD",
        family="MI250X",
        vendor="AMD",
        peaks=tera(fp64=47.85, fp32=47.85, bf16=191.5, fp16=191.5, int8=191.5),
        memory_gib=64,
        memory_gb_per_s=1638.4,
        device=r"(amd )?(instinct )?mi250x( mi250)?( oam)?",
        source="AMD Instinct MI250X data sheet (dense, matrix), half of the module",
        note="what PyTorch calls a device: half a module",
    ),
    chip(
        "MI300X",
        vendor="AMD",
        peaks=_CDNA3_PEAKS,
        memory_gib=192,
        memory_gb_per_s=5325,
        device=r"(amd )?(instinct )?mi300x( oam| vf)?",
        source="AMD Instinct MI300X data sheet (prints dense and sparse; dense used)",
        note="in CPX or DPX mode a device is a part of the chip",
    ),
    chip(
        "MI325X",
        vendor="AMD",
        peaks=_CDNA3_PEAKS,
        memory_gib=256,
        memory_gb_per_s=6000,
        device=r"(amd )?(instinct )?mi325x( oam| vf)?",
        source="AMD Instinct MI325X data sheet (prints dense and sparse; dense used)",
        note="in CPX or DPX mode a device is a part of the chip",
    ),
    chip(
        "MI355X",
        vendor="AMD",
        peaks=tera(
            fp64=78.6,
            fp32=157.3,
            bf16=2516.6,
            fp16=2516.6,
            fp8=5033.2,
            int8=5033.2,
            fp6=10066.3,
            fp4=10066.3,
        ),
        memory_gib=288,
        memory_gb_per_s=8000,
        device=r"(amd )?(instinct )?mi355x( oam| vf)?",
        source="AMD Instinct MI355X data sheet (prints dense and sparse; dense used)",
        note="in CPX or DPX mode a device is a part of the chip; no tf32 unit",
    ),
)

GOOGLE: Final[tuple[Chip, ...]] = (
    chip(
        "TPU-v4",
        vendor="Google",
        peaks=tera(bf16=275.0, int8=275.0),
        memory_gib=32,
        memory_gb_per_s=1200,
        device=r"tpu v4",
        source=_TPU + "v4",
    ),
    chip(
        "TPU-v5e",
        vendor="Google",
        peaks=tera(bf16=197.0, int8=393.0),
        memory_gib=16,
        memory_gb_per_s=819,
        device=r"tpu v5 ?(e|lite|litepod)",
        source=_TPU + "v5e",
    ),
    chip(
        "TPU-v5p",
        vendor="Google",
        peaks=tera(bf16=459.0, fp8=459.0, int8=918.0),
        memory_gib=95,
        memory_gb_per_s=2765,
        device=r"tpu v5p?",
        source=_TPU + "v5p; fp8 from the comparison table of TPU7x",
        note="JAX calls it TPU v5",
    ),
    chip(
        "TPU-v6e",
        vendor="Google",
        peaks=tera(bf16=918.0, fp8=918.0, int8=1836.0),
        memory_gib=32,
        memory_gb_per_s=1638,
        device=r"tpu v6 ?(e|lite)",
        source=_TPU + "v6e; fp8 from the comparison table of TPU7x",
        note="Trillium",
    ),
    chip(
        "TPU-v7x-chip",
        family="TPU-v7x",
        vendor="Google",
        peaks=tera(bf16=2307.0, fp8=4614.0),
        memory_gib=192,
        memory_gb_per_s=7380,
        device=r"(?!)",
        source=_TPU + "TPU7x (Ironwood)",
        note="both halves; JAX shows its two halves, TPU-v7x-core",
    ),
    chip(
        "TPU-v7x-core",
        family="TPU-v7x",
        vendor="Google",
        peaks=tera(bf16=1153.5, fp8=2307.0),
        memory_gib=96,
        memory_gb_per_s=3690,
        device=r"tpu ?v?7x",
        source=_TPU + "TPU7x (Ironwood), half of the chip",
        note="what JAX calls a device: half a chip",
    ),
)

INTEL: Final[tuple[Chip, ...]] = (
    chip(
        "Gaudi2",
        vendor="Intel",
        peaks=tera(bf16=432.0, fp8=865.0),
        memory_gib=96,
        memory_gb_per_s=2460,
        device=r"(intel )?(habana )?(gaudi ?2|hl 225[a-z]?)",
        source="Intel Gaudi 3 AI Accelerator white paper, comparison with Gaudi 2 (dense, matrix)",
    ),
    chip(
        "Gaudi3",
        vendor="Intel",
        peaks=tera(bf16=1835.0, fp8=1835.0),
        memory_gib=128,
        memory_gb_per_s=3700,
        device=r"(intel )?(habana )?(gaudi ?3|hl 325[a-z]?)",
        source="Intel Gaudi 3 AI Accelerator white paper (dense, matrix)",
        note="later Intel pages print 1678 for the same part: the higher figure is kept",
    ),
)

AWS: Final[tuple[Chip, ...]] = (
    chip(
        "Trainium1",
        vendor="AWS",
        peaks=tera(fp32=47.5, tf32=190.0, bf16=190.0, fp16=190.0, fp8=190.0, int8=380.0),
        memory_gib=32,
        memory_gb_per_s=880,
        device=r"(aws )?(trainium ?1?|trn1n?)",
        source=_NEURON + "Trainium",
        note=_CORES,
    ),
    chip(
        "Trainium2",
        vendor="AWS",
        peaks=tera(fp32=181.0, tf32=667.0, bf16=667.0, fp16=667.0, fp8=1299.0),
        memory_gib=96,
        memory_gb_per_s=2900,
        device=r"(aws )?(trainium ?2|trn2u?)",
        source=_NEURON + "Trainium2 (dense)",
        note=_CORES,
    ),
)
