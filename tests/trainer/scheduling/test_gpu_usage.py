"""Cards as answers in the documented form of their drivers tell of them, and the energy that is added up."""

import json
import plistlib
from dataclasses import replace
from types import SimpleNamespace

import pytest

from trainer.__main__ import main
from trainer.errors import UserError
from trainer.scheduling import energy
from trainer.scheduling.energy import EnergyMeter, Tariff
from trainer.scheduling.gpu_usage import Amd, AmdFiles, Apple, Gpu, Nvidia
from trainer.store import RunLog, Workspace


class Refused(Exception):
    pass


def _refuse(*_):
    raise Refused("not supported")


# As nvidia-ml-py 12 is documented, not recorded: a card of a data center, and a card of a laptop that tells no power
# and an old driver without energy.
NVML = SimpleNamespace(
    NVMLError=Refused,
    NVML_TEMPERATURE_GPU=0,
    nvmlDeviceGetCount=lambda: 2,
    nvmlDeviceGetHandleByIndex=lambda number: number,
    nvmlDeviceGetName=lambda card: ("NVIDIA H100 80GB HBM3", b"GeForce MX150")[card],
    nvmlDeviceGetMemoryInfo=lambda card: SimpleNamespace(used=2**30, total=80 * 2**30),
    nvmlDeviceGetUtilizationRates=lambda card: SimpleNamespace(gpu=87, memory=40),
    nvmlDeviceGetTemperature=lambda card, which: 61,
    nvmlDeviceGetPowerUsage=lambda card: _refuse() if card else 412_300,
    nvmlDeviceGetTotalEnergyConsumption=lambda card: _refuse() if card else 7_200_000,
    nvmlDeviceGetComputeRunningProcesses=lambda card: [SimpleNamespace(pid=11, usedGpuMemory=512 * 2**20)],
    nvmlDeviceGetPciInfo=lambda card: SimpleNamespace(busId=b"00000000:65:00.0"),
)


def test_nvidia():
    first, second = Nvidia(NVML).cards()
    assert first == Gpu(
        0, "NVIDIA H100 80GB HBM3", 87.0, 1024.0, 81920.0, 61.0, 412.3, {11: 512.0}, 7200.0, "0000:65:00"
    )
    assert (second.name, second.watts, second.joules) == ("GeForce MX150", None, None)
    assert Nvidia(SimpleNamespace(NVMLError=Refused, nvmlDeviceGetCount=_refuse)).cards() == ()


# As amdsmi 6.4 is documented, not recorded: a card that has no sensor at its edge and no average power.
AMDSMI = SimpleNamespace(
    AmdSmiException=Refused,
    AmdSmiTemperatureType=SimpleNamespace(EDGE=0, HOTSPOT=1),
    AmdSmiTemperatureMetric=SimpleNamespace(CURRENT=0),
    amdsmi_get_processor_handles=lambda: ["handle"],
    amdsmi_get_gpu_asic_info=lambda _: {"market_name": "AMD Instinct MI300X", "vendor_id": 0x1002},
    amdsmi_get_gpu_activity=lambda _: {"gfx_activity": 93, "umc_activity": 12, "mm_activity": "N/A"},
    amdsmi_get_gpu_vram_usage=lambda _: {"vram_total": 196_592, "vram_used": 4_096},
    amdsmi_get_power_info=lambda _: {"current_socket_power": 650, "average_socket_power": "N/A"},
    amdsmi_get_energy_count=lambda _: {"energy_accumulator": 1_000_000, "counter_resolution": 15.3, "timestamp": 1},
    amdsmi_get_temp_metric=lambda _, kind, metric: 71 if kind else _refuse(),
    amdsmi_get_gpu_process_list=lambda _: [{"pid": 12, "name": "N/A", "memory_usage": {"vram_mem": 2**30}}],
    amdsmi_get_gpu_device_bdf=lambda _: "0000:c1:00.0",
)


def test_amd_by_its_library():
    (card,) = Amd(AMDSMI).cards()
    assert card.joules == pytest.approx(15.3)
    assert replace(card, joules=None) == Gpu(
        0, "AMD Instinct MI300X", 93.0, 4096.0, 196592.0, 71.0, 650.0, {12: 1024.0}, None, "0000:c1:00"
    )


def test_amd_by_the_files_of_the_kernel(tmp_path):
    for number, vendor in enumerate(("0x8086", "0x1002")):
        device = tmp_path / "pci" / f"0000:0{number}:00.0"
        (device / "hwmon" / "hwmon3").mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (tmp_path / "drm" / f"card{number}").mkdir(parents=True)
        (tmp_path / "drm" / f"card{number}" / "device").symlink_to(device)
    (tmp_path / "drm" / "card1-DP-1").mkdir()
    for name, text in {
        "gpu_busy_percent": "45", "mem_info_vram_used": str(2**30), "mem_info_vram_total": str(2**34),
        "hwmon/hwmon3/temp1_input": "54000", "hwmon/hwmon3/power1_average": "203000000",
    }.items():  # fmt: skip
        (device / name).write_text(f"{text}\n")
    assert AmdFiles(tmp_path / "drm").cards() == (
        Gpu(0, "AMD GPU 0", 45.0, 1024.0, 16384.0, 54.0, 203.0, {}, None, "0000:01:00"),
    )


def test_apple():
    told = {"Device Utilization %": 31, "In use system memory": 3 * 2**30}
    answer = plistlib.dumps([{"model": "Apple M3 Max", "PerformanceStatistics": told}])
    windows = iter((2_000, 500))
    monitor = SimpleNamespace(
        begin_window=lambda name: None, end_window=lambda name: SimpleNamespace(gpu_mj=next(windows))
    )
    cards = Apple(lambda: answer, monitor)
    assert cards.cards() == (Gpu(0, "Apple M3 Max", 31.0, 3072.0, None, None, None, {}, 2.0),)
    assert cards.cards()[0].joules == 2.5
    assert Apple(lambda: answer).cards()[0].joules is None
    assert Apple(lambda: b"no list").cards() == ()


def _card(joules: float | None = None, watts: float | None = None, number: int = 0) -> Gpu:
    return Gpu(number, "", None, None, None, None, watts, {}, joules)


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([(_card(7_200), _card(100.0, number=1)), (_card(10_800), _card(3_700.0, number=1))], 2.0),
        ([(_card(7_200),), (_card(36),), (_card(3_636),)], 1.0),  # the driver was loaded again between the first two
        ([(_card(watts=200.0),), (_card(watts=400.0),)], 300.0 * 60 / 3600),
        ([(_card(),), (_card(),)], None),
        ([(), ()], None),
    ],
)
def test_energy_is_added_up_from_counters_or_power(readings, expected):
    told, seconds = iter(readings), iter(range(0, 600, 60))
    meter = EnergyMeter(lambda: next(told), used_wh=0.5, clock=lambda: float(next(seconds)))
    for _ in readings[1:]:
        used = meter.wh()
    assert used == (None if expected is None else pytest.approx(expected + 0.5))


def test_power_is_not_guessed_for_a_time_in_which_nothing_was_read():
    told, seconds = iter([(_card(watts=200.0),)] * 2), iter((0.0, 4_000.0))
    assert EnergyMeter(lambda: next(told), clock=lambda: next(seconds)).wh() == 0


def test_the_energy_of_runs_and_its_price(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(energy.default_paths, "user_folder", lambda: tmp_path / "settings")
    workspace = Workspace(tmp_path / "space")
    for wh in (125.0, 75.0, None):
        with RunLog.claim(workspace, workspace.runs.create(_run())) as log:
            log.scalars(1, {"train/loss": 1.0} | ({energy.METRIC: wh} if wh else {}))
            log.status("finished")
    words = ["energy", "--workspace", str(tmp_path / "space")]
    assert main(words) == 0
    assert "125 Wh\n" in capsys.readouterr().out
    assert main([*words, "--tariff", "0.32", "EUR"]) == 0
    told = capsys.readouterr().out
    assert "125 Wh (0.04 EUR)" in told
    assert "200 Wh (0.064 EUR)" in told
    assert "Of 1 runs nothing is known" in told
    assert main([*words, "--json", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == [
        {"id": 1, "name": "run", "wh": 125.0, "price": pytest.approx(0.04)}
    ]
    assert main(["runs", "show", "1", "--workspace", str(tmp_path / "space")]) == 0
    assert "energy    125 Wh (0.04 EUR) of the GPUs" in capsys.readouterr().out
    energy.set_tariff(0, "EUR")
    assert energy.tariff() is None
    with pytest.raises(UserError, match="is not a price of a kilowatt-hour"):
        energy.set_tariff(-1, "EUR")
    assert Tariff(0.2, "CHF").words(2_000) == "0.4 CHF"
    workspace.close()


def _run():
    from trainer import config

    return config.Run()
