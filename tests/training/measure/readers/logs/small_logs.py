"""A few lines of every kind of text log, written for the tests: three steps, a save, an end."""

from typing import Final

_AGENT: Final = (
    "I0307 10:0{}.000000 42 torch/distributed/elastic/agent/server/api.py:5] [default] {}"
)

MEGATRON: Final = """\
using world size: 8, data-parallel-size: 4
[after megatron is initialized] datetime: 2025-03-07 10:00:00
 [2025-03-07 10:01:00] iteration       1/   10 | elapsed time per iteration (ms): 9000.0 | x |
 [2025-03-07 10:01:02] iteration       2/   10 | elapsed time per iteration (ms): 2000.0 | x |
 [2025-03-07 10:01:02] saving checkpoint at iteration       2 to /c
 [2025-03-07 10:01:05] successfully saved checkpoint from iteration       2 to /c
 validation loss at iteration 2 | lm loss value: 2.1E+00 |
 [2025-03-07 10:01:09] iteration       3/   10 | elapsed time per iteration (ms): 2000.0 | x |
[exiting program at iteration 3] datetime: 2025-03-07 10:01:10
"""
NEMO: Final = """\
[NeMo I 2025-03-07 10:00:00 nemo_logger:145] Experiments will be logged at /x
All distributed processes registered. Starting with 8 processes
Training epoch 0, iteration 0/9 | lr: 1e-07 | global_step: 0 | train_step_timing in s: 10.31
Training epoch 0, iteration 1/9 | lr: 1e-07 | global_step: 1 | train_step_timing in s: 7.5
[NeMo I 2025-03-07 10:00:22 model_checkpoint:497] Scheduled async checkpoint save for /c/step=1-x
Training epoch 0, iteration 2/9 | lr: 1e-07 | global_step: 2 | train_step_timing in s: 7.5
[NeMo I 2025-03-07 10:00:31 m:522] Async checkpoint save for step 2 (/c/step=1-x) finalized well.
`Trainer.fit` stopped: `max_steps=3` reached.
"""
TORCHTITAN: Final = """\
[rank0]:[titan] 2025-03-07 10:00:00,000 - root - INFO - Starting job: x
[rank0]:[titan] 2025-03-07 10:00:10,000 - root - INFO - Training starts at step 1
[rank0]:[titan] 2025-03-07 10:00:20,000 - root - INFO - \x1b[31mstep:  1  \x1b[32mloss:  7.1
[rank0]:[titan] 2025-03-07 10:00:22,000 - root - INFO - \x1b[31mstep:  2  \x1b[32mloss:  7.1
[rank0]:[titan] 2025-03-07 10:00:22,100 - root - INFO - Saving the checkpoint
[rank0]:[titan] 2025-03-07 10:00:25,100 - root - INFO - Finished saving in 3.0 seconds.
[rank0]:[titan] 2025-03-07 10:00:28,000 - root - INFO - \x1b[31mstep:  3  \x1b[32mloss:  7.1
[rank0]:[titan] 2025-03-07 10:00:29,000 - root - INFO - Training completed
"""
MAXTEXT: Final = """\
Num_devices: 8, shape (1, 8)
 Total TFLOPs: 764.67
I0307 10:00:20.000000 7 metric_logger.py:226] completed step: 0, seconds: 10.5, TFLOP/s/device: 1.0
I0307 10:00:22.000000 7 metric_logger.py:226] completed step: 1, seconds: 2.0, TFLOP/s/device: 1.0
Started an asynchronous checkpoint save for step 1
eval metrics after step: 1, loss=3.1
I0307 10:00:27.000000 7 metric_logger.py:226] completed step: 2, seconds: 2.0, TFLOP/s/device: 1.0
"""
DETECTRON2: Final = """\
[03/07 10:00:00 detectron2]: Rank of current process: 0. World size: 8
[03/07 10:00:05 d2.engine.train_loop]: Starting training from iteration 0
[03/07 10:00:15 d2.utils.events]:  eta: 0:01  iter: 0  loss: 8.8  time: 1.1  data_time: 0.5  lr: 0.1
[03/07 10:00:17 d2.utils.events]:  eta: 0:01  iter: 1  loss: 8.8  time: 1.1  data_time: 0.5  lr: 0.1
[03/07 10:00:17 fvcore.common.checkpoint]: Saving checkpoint to out/model_0000001.pth
[03/07 10:00:20 d2.utils.events]:  eta: 0:01  iter: 2  loss: 8.8  time: 1.1  data_time: 0.5  lr: 0.1
[03/07 10:00:20 d2.evaluation.evaluator]: Start inference on 125 batches
[03/07 10:00:29 d2.evaluation.evaluator]: Total inference time: 0:00:09
"""
DEEPSPEED: Final = """\
[2025-03-07 10:00:01,000] [INFO] [x.py:1:y] Rank 0 Skipping step. Attempted loss scale: 2
[2025-03-07 10:00:10,000] [INFO] [timer.py:9:stop] 0/1, SamplesPerSec=1, CurrSamplesPerSec=1
[2025-03-07 10:00:12,000] [INFO] [timer.py:9:stop] 0/2, SamplesPerSec=1, CurrSamplesPerSec=1
[2025-03-07 10:00:12,000] [INFO] [t.py:2:save] [Torch] Checkpoint global_step2 is about to be saved!
[2025-03-07 10:00:15,000] [INFO] [t.py:2:commit] [Torch] Checkpoint global_step2 is ready now!
***** Evaluating perplexity, Epoch 1/16 *****
[2025-03-07 10:00:19,000] [INFO] [timer.py:9:stop] 0/3, SamplesPerSec=1, CurrSamplesPerSec=1
[2025-03-07 10:00:20,000] [INFO] [launch.py:460:main] Process 73584 exits successfully.
"""
RLHF: Final = """\
***** Running training *****
epoch: 0|step: 0|ppo_ep: 1|act_loss: 0.02|cri_loss: 0.2|unsuper_loss: 0.0
|E2E latency=4.00s |Gather latency=0.50s (12.50%) |Generate time=2.00s (50.00%) |Training time=1.2s
epoch: 0|step: 1|ppo_ep: 1|act_loss: 0.02|cri_loss: 0.2|unsuper_loss: 0.0
|E2E latency=4.00s |Gather latency=0.50s (12.50%) |Generate time=2.00s (50.00%) |Training time=1.2s
epoch: 0|step: 2|ppo_ep: 1|act_loss: 0.02|cri_loss: 0.2|unsuper_loss: 0.0
|E2E latency=4.00s |Gather latency=0.50s (12.50%) |Generate time=2.00s (50.00%) |Training time=1.2s
"""
HF_TRAINER: Final = (
    "[INFO|trainer.py:1143] 2025-03-07 10:00:00,000 >> ***** Running training *****\n"
    "\r  0%|   | 0/3 [00:00<?, ?it/s]\r 33%|█  | 1/3 [00:10<00:02, 1.0s/it]"
    "\r 66%|██ | 2/3 [00:12<00:02, 1.0s/it]\n{'eval_loss': 2.0, 'eval_runtime': 3.0}\n"
    "\r100%|███| 3/3 [00:17<00:02, 1.0s/it]\n"
    "{'train_runtime': 17.5, 'train_steps_per_second': 0.2, 'train_loss': 2.1}\n"
)
NANOGPT: Final = """\
iter 0: loss 4.2187, time 9000.00ms, mfu 31.02%
iter 1: loss 4.2187, time 500.00ms, mfu 31.02%
step 2: train loss 3.1, val loss 3.2
saving checkpoint to out
iter 2: loss 4.2187, time 3500.00ms, mfu 31.02%
"""
MODDED: Final = """\
Tue Oct 29 17:09:20 2024
step:0/3 val_loss:16.0 train_time:387ms step_avg:nanms
step:1/3 train_loss:16.0 train_time:23767ms step_avg:nanms
step:2/3 train_loss:9.9 train_time:23895ms step_avg:nanms
step:3/3 train_loss:9.7 train_time:24028ms step_avg:nanms
step:3/3 val_loss:9.6 train_time:24030ms step_avg:nanms
"""
_FAILED: Final = (
    "E0307 10:01:30.000000 42 torch/distributed/elastic/multiprocessing/api.py:869] failed "
    "(exitcode: -9) local_rank: 3 (pid: 9) of binary: python"
)
_STALLED: Final = (
    "[rank3]:[E0307 10:13:00.426 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=8) ran for 600026 milliseconds before timing out."
)
TORCHELASTIC: Final = "\n".join(
    [
        _AGENT.format("0:00", "starting workers for entrypoint: python"),
        _AGENT.format("0:02", "Starting worker group"),
        *MEGATRON.splitlines()[:3],
        _FAILED,
        _AGENT.format("1:31", "Worker group FAILED. 2/3 attempts left; will restart worker group"),
        _AGENT.format("1:40", "Rendezvous'ing worker group"),
        _AGENT.format("1:45", "Starting worker group"),
        MEGATRON.splitlines()[3].replace("10:01", "10:02"),
        _STALLED,
        "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2025-03-07T10:14:00 ***",
        "",
    ]
)

SMALL_LOGS: Final = {
    "megatron": MEGATRON,
    "nemo": NEMO,
    "torchtitan": TORCHTITAN,
    "maxtext": MAXTEXT,
    "detectron2": DETECTRON2,
    "deepspeed": DEEPSPEED,
    "deepspeed-chat rlhf": RLHF,
    "hf trainer": HF_TRAINER,
    "nanogpt": NANOGPT,
    "modded-nanogpt": MODDED,
}
"""Three steps each."""
