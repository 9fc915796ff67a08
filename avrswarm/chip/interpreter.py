"""The interpreter: fetch, decode, execute. The only loop over instructions in Python.

It runs instructions freely up to a limit that the core gives it (``avrswarm.chip.core``), which
moves when an access to the I/O space makes something happen. State lives in local variables
meanwhile:

* flags are kept unpacked: ``carry`` is 0 or 1, ``zero`` is a value that is 0 when Z is set, the
  others hold the flag in the bit where the arithmetic leaves it (bit 7 for N, V, S; bit 4 for H);
* cases that touch only registers and SRAM end with ``continue``; those that reach the I/O space
  leave an access behind, which the code after the ``match`` carries out.

Cycle counts and results: AVR Instruction Set Manual; edges and interrupts: timing reference
0 and 2.2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip import idle, native, sleep
from avrswarm.chip.cpu import Slot, Stop, pack_sreg
from avrswarm.chip.data_space import (
    Access,
    after_store,
    byte,
    change_bit,
    horizon,
    pop_byte,
    push_outside,
    push_word,
    read_data,
    write_data,
)
from avrswarm.chip.faults import Fault, report
from avrswarm.chip.peripherals import self_programming, watchdog
from avrswarm.chip.registers import SMCR, SPH, SPL, SREG
from avrswarm.chip.schedule import handle_due
from avrswarm.chip.state import DATA_SIZE, NEVER, SRAM_START, ChipRow, Source, Touch
from avrswarm.isa.decode import PC_MASK, SKIP_TWO
from avrswarm.isa.table import Op
from avrswarm.jit import kernel


@kernel
def interpret(
    c: ChipRow,
    flash: NDArray[np.uint16],
    code: NDArray[np.uint32],
    blocks: NDArray[np.int64],
    tape: NDArray[np.int64],
    scratch: NDArray[np.int64],
    translated: int,
) -> int:
    """Run instructions from where ``c.cpu`` stands up to its limit; return a ``Stop``.

    With ``translated`` it also ends, after an instruction at least, where ``blocks`` has native
    code. While a loop is being probed it notes which bytes the program touches, and ends when that
    comes back, or has touched what is not only a byte; while an interrupt keeps a proven loop
    waiting it notes what is written.
    """
    data = c.memory
    n = c.cpu
    pc = n[Slot.PC]
    cycle = n[Slot.CYCLE]
    sp = n[Slot.SP]
    limit = n[Slot.LIMIT]
    carry = n[Slot.CARRY]
    zero = n[Slot.ZERO]
    negative = n[Slot.NEGATIVE]
    overflow = n[Slot.OVERFLOW]
    sign = n[Slot.SIGN]
    half = n[Slot.HALF]
    t_flag = n[Slot.T]
    i_flag = n[Slot.I]
    stop = n[Slot.STOP]
    ceiling = n[Slot.CEILING]
    probing = n[Slot.NOTING]
    noted = probing or c.suspended != 0
    target = n[Slot.TARGET]
    watched = probing or noted or translated
    begun = 0
    reason = Stop.CYCLES.value

    while cycle <= limit:
        if watched:
            if begun:
                if pc == target or (probing and c.io_touched & Touch.VOLATILE):
                    break
                if translated and blocks[native.STEPS + pc]:
                    break
            begun = 1
            if noted and idle.IS_NOTED[int(code[pc]) & 0xFF]:
                idle.note_access(c, scratch, int(code[pc]) & 0xFFFFFFFF, pc, sp, cycle)
        word = int(code[pc]) & 0xFFFFFFFF
        here = pc
        a = word >> 8 & 0xFF
        b = word >> 16
        pc = (pc + 1) & PC_MASK
        access = Access.LOAD.value
        address = 0
        match word & 0xFF:
            case Op.NOP:
                cycle += 1
                continue
            case Op.MOVW:
                data[a] = data[b]
                data[a + 1] = data[b + 1]
                cycle += 1
                continue
            case Op.MUL:
                result = byte(data, a) * byte(data, b)
                data[0] = result & 0xFF
                data[1] = result >> 8 & 0xFF
                carry = result >> 15 & 1
                zero = result & 0xFFFF
                cycle += 2
                continue
            case Op.MULS:
                result = ((byte(data, a) ^ 0x80) - 0x80) * ((byte(data, b) ^ 0x80) - 0x80)
                data[0] = result & 0xFF
                data[1] = result >> 8 & 0xFF
                carry = result >> 15 & 1
                zero = result & 0xFFFF
                cycle += 2
                continue
            case Op.MULSU:
                result = ((byte(data, a) ^ 0x80) - 0x80) * byte(data, b)
                data[0] = result & 0xFF
                data[1] = result >> 8 & 0xFF
                carry = result >> 15 & 1
                zero = result & 0xFFFF
                cycle += 2
                continue
            case Op.FMUL:
                result = byte(data, a) * byte(data, b)
                carry = result >> 15 & 1
                result <<= 1
                data[0] = result & 0xFF
                data[1] = result >> 8 & 0xFF
                zero = result & 0xFFFF
                cycle += 2
                continue
            case Op.FMULS:
                result = ((byte(data, a) ^ 0x80) - 0x80) * ((byte(data, b) ^ 0x80) - 0x80)
                carry = result >> 15 & 1
                result <<= 1
                data[0] = result & 0xFF
                data[1] = result >> 8 & 0xFF
                zero = result & 0xFFFF
                cycle += 2
                continue
            case Op.FMULSU:
                result = ((byte(data, a) ^ 0x80) - 0x80) * byte(data, b)
                carry = result >> 15 & 1
                result <<= 1
                data[0] = result & 0xFF
                data[1] = result >> 8 & 0xFF
                zero = result & 0xFFFF
                cycle += 2
                continue
            case Op.ADD:
                d, r = byte(data, a), byte(data, b)
                result = d + r
                data[a] = result & 0xFF
                carry = result >> 8
                zero = result & 0xFF
                negative = result
                overflow = (d ^ result) & (r ^ result)
                sign = negative ^ overflow
                half = d ^ r ^ result
                cycle += 1
                continue
            case Op.ADC:
                d, r = byte(data, a), byte(data, b)
                result = d + r + carry
                data[a] = result & 0xFF
                carry = result >> 8
                zero = result & 0xFF
                negative = result
                overflow = (d ^ result) & (r ^ result)
                sign = negative ^ overflow
                half = d ^ r ^ result
                cycle += 1
                continue
            case Op.SUB:
                d, r = byte(data, a), byte(data, b)
                result = d - r
                data[a] = result & 0xFF
                carry = result >> 8 & 1
                zero = result & 0xFF
                negative = result
                overflow = (d ^ r) & (d ^ result)
                sign = negative ^ overflow
                half = d ^ r ^ result
                cycle += 1
                continue
            case Op.SUBI:
                d = byte(data, a)
                result = d - b
                data[a] = result & 0xFF
                carry = result >> 8 & 1
                zero = result & 0xFF
                negative = result
                overflow = (d ^ b) & (d ^ result)
                sign = negative ^ overflow
                half = d ^ b ^ result
                cycle += 1
                continue
            case Op.SBC:
                d, r = byte(data, a), byte(data, b)
                result = d - r - carry
                data[a] = result & 0xFF
                carry = result >> 8 & 1
                zero |= result & 0xFF  # Z is never set, only kept (manual: SBC)
                negative = result
                overflow = (d ^ r) & (d ^ result)
                sign = negative ^ overflow
                half = d ^ r ^ result
                cycle += 1
                continue
            case Op.SBCI:
                d = byte(data, a)
                result = d - b - carry
                data[a] = result & 0xFF
                carry = result >> 8 & 1
                zero |= result & 0xFF
                negative = result
                overflow = (d ^ b) & (d ^ result)
                sign = negative ^ overflow
                half = d ^ b ^ result
                cycle += 1
                continue
            case Op.CP:
                d, r = byte(data, a), byte(data, b)
                result = d - r
                carry = result >> 8 & 1
                zero = result & 0xFF
                negative = result
                overflow = (d ^ r) & (d ^ result)
                sign = negative ^ overflow
                half = d ^ r ^ result
                cycle += 1
                continue
            case Op.CPI:
                d = byte(data, a)
                result = d - b
                carry = result >> 8 & 1
                zero = result & 0xFF
                negative = result
                overflow = (d ^ b) & (d ^ result)
                sign = negative ^ overflow
                half = d ^ b ^ result
                cycle += 1
                continue
            case Op.CPC:
                d, r = byte(data, a), byte(data, b)
                result = d - r - carry
                carry = result >> 8 & 1
                zero |= result & 0xFF
                negative = result
                overflow = (d ^ r) & (d ^ result)
                sign = negative ^ overflow
                half = d ^ r ^ result
                cycle += 1
                continue
            case Op.AND:
                result = byte(data, a) & byte(data, b)
                data[a] = result
                zero = result
                negative = result
                overflow = 0
                sign = result
                cycle += 1
                continue
            case Op.ANDI:
                result = byte(data, a) & b
                data[a] = result
                zero = result
                negative = result
                overflow = 0
                sign = result
                cycle += 1
                continue
            case Op.OR:
                result = byte(data, a) | byte(data, b)
                data[a] = result
                zero = result
                negative = result
                overflow = 0
                sign = result
                cycle += 1
                continue
            case Op.ORI:
                result = byte(data, a) | b
                data[a] = result
                zero = result
                negative = result
                overflow = 0
                sign = result
                cycle += 1
                continue
            case Op.EOR:
                result = byte(data, a) ^ byte(data, b)
                data[a] = result
                zero = result
                negative = result
                overflow = 0
                sign = result
                cycle += 1
                continue
            case Op.COM:
                result = 0xFF - byte(data, a)
                data[a] = result
                carry = 1
                zero = result
                negative = result
                overflow = 0
                sign = result
                cycle += 1
                continue
            case Op.NEG:
                d = byte(data, a)
                result = -d & 0xFF
                data[a] = result
                carry = 1 if result else 0
                zero = result
                negative = result
                overflow = d & result
                sign = negative ^ overflow
                half = d ^ result
                cycle += 1
                continue
            case Op.INC:
                result = byte(data, a) + 1 & 0xFF
                data[a] = result
                zero = result
                negative = result
                overflow = 0x80 if result == 0x80 else 0
                sign = negative ^ overflow
                cycle += 1
                continue
            case Op.DEC:
                result = byte(data, a) - 1 & 0xFF
                data[a] = result
                zero = result
                negative = result
                overflow = 0x80 if result == 0x7F else 0
                sign = negative ^ overflow
                cycle += 1
                continue
            case Op.LSR:
                d = byte(data, a)
                result = d >> 1
                data[a] = result
                carry = d & 1
                zero = result
                negative = 0
                overflow = carry << 7  # V = N xor C
                sign = carry << 7
                cycle += 1
                continue
            case Op.ROR:
                d = byte(data, a)
                result = d >> 1 | carry << 7
                data[a] = result
                carry = d & 1
                zero = result
                negative = result
                overflow = result ^ carry << 7
                sign = carry << 7
                cycle += 1
                continue
            case Op.ASR:
                d = byte(data, a)
                result = d >> 1 | d & 0x80
                data[a] = result
                carry = d & 1
                zero = result
                negative = result
                overflow = result ^ carry << 7
                sign = carry << 7
                cycle += 1
                continue
            case Op.SWAP:
                d = byte(data, a)
                data[a] = (d << 4 | d >> 4) & 0xFF
                cycle += 1
                continue
            case Op.MOV:
                data[a] = data[b]
                cycle += 1
                continue
            case Op.LDI:
                data[a] = b
                cycle += 1
                continue
            case Op.ADIW:
                d = byte(data, a) | byte(data, a + 1) << 8
                result = d + b
                data[a] = result & 0xFF
                data[a + 1] = result >> 8 & 0xFF
                carry = result >> 16
                zero = result & 0xFFFF
                negative = result >> 8
                overflow = (~d & result) >> 8
                sign = negative ^ overflow
                cycle += 2
                continue
            case Op.SBIW:
                d = byte(data, a) | byte(data, a + 1) << 8
                result = d - b
                data[a] = result & 0xFF
                data[a + 1] = result >> 8 & 0xFF
                carry = result >> 16 & 1
                zero = result & 0xFFFF
                negative = result >> 8
                overflow = (d & ~result) >> 8
                sign = negative ^ overflow
                cycle += 2
                continue
            case Op.BST:
                t_flag = byte(data, a) >> b & 1
                cycle += 1
                continue
            case Op.BLD:
                data[a] = byte(data, a) & ~(1 << b) | t_flag << b
                cycle += 1
                continue
            case Op.SEC:
                carry = 1
                cycle += 1
                continue
            case Op.SEZ:
                zero = 0
                cycle += 1
                continue
            case Op.SEN:
                negative = 0x80
                cycle += 1
                continue
            case Op.SEV:
                overflow = 0x80
                cycle += 1
                continue
            case Op.SES:
                sign = 0x80
                cycle += 1
                continue
            case Op.SEH:
                half = 0x10
                cycle += 1
                continue
            case Op.SET:
                t_flag = 1
                cycle += 1
                continue
            case Op.SEI:
                cycle += 1
                if not i_flag:  # I lands with the next instruction's start: that one runs first
                    i_flag = 1
                    c.held_until = max(c.held_until, cycle + 1)
                    limit = min(horizon(c, 1, cycle, stop), ceiling)
                continue
            case Op.CLC:
                carry = 0
                cycle += 1
                continue
            case Op.CLZ:
                zero = 1
                cycle += 1
                continue
            case Op.CLN:
                negative = 0
                cycle += 1
                continue
            case Op.CLV:
                overflow = 0
                cycle += 1
                continue
            case Op.CLS:
                sign = 0
                cycle += 1
                continue
            case Op.CLH:
                half = 0
                cycle += 1
                continue
            case Op.CLT:
                t_flag = 0
                cycle += 1
                continue
            case Op.CLI:  # acts at once: no interrupt after it, not even one of its own cycle
                i_flag = 0
                cycle += 1
                continue
            case Op.RJMP:
                cycle += 2
                if (
                    b == here
                    and not i_flag
                    and c.stop_when_halted
                    and c.next[Source.WATCHDOG] == NEVER
                ):
                    pc = here
                    reason = Stop.HALTED.value
                    break
                pc = b
                continue
            case Op.RJMP_POLL:
                pc = b
                cycle += 2
                if cycle < limit and c.skip_idle and code[b] & 0xFF != Op.BREAKPOINT:
                    cycle = idle.skip_poll_loop(c, tape, code, b, cycle, limit)
                continue
            case Op.JMP:
                pc = b
                cycle += 3
                continue
            case Op.IJMP:
                pc = (byte(data, 30) | byte(data, 31) << 8) & PC_MASK
                cycle += 2
                continue
            case Op.RCALL:
                cycle += 3
                push_word(c, tape, sp, pc, cycle, here)
                sp = (sp - 2) & 0xFFFF
                pc = b
                if c.fault:
                    break
                continue
            case Op.CALL:
                cycle += 4
                push_word(c, tape, sp, (pc + 1) & PC_MASK, cycle, here)
                sp = (sp - 2) & 0xFFFF
                pc = b
                if c.fault:
                    break
                continue
            case Op.ICALL:
                cycle += 3
                push_word(c, tape, sp, pc, cycle, here)
                sp = (sp - 2) & 0xFFFF
                pc = (byte(data, 30) | byte(data, 31) << 8) & PC_MASK
                if c.fault:
                    break
                continue
            case Op.RET:
                high = pop_byte(c, tape, (sp + 1) & 0xFFFF, cycle + 1, here)
                low = pop_byte(c, tape, (sp + 2) & 0xFFFF, cycle + 1, here)
                sp = (sp + 2) & 0xFFFF
                pc = (high << 8 | low) & PC_MASK
                cycle += 4
                if c.fault:
                    break
                continue
            case Op.RETI:
                high = pop_byte(c, tape, (sp + 1) & 0xFFFF, cycle + 1, here)
                low = pop_byte(c, tape, (sp + 2) & 0xFFFF, cycle + 1, here)
                sp = (sp + 2) & 0xFFFF
                pc = (high << 8 | low) & PC_MASK
                cycle += 4
                i_flag = 1
                c.held_until = max(c.held_until, cycle + 1)  # one instruction runs first
                limit = min(horizon(c, 1, cycle, stop), ceiling)
                if c.suspended:
                    limit = -1  # look at once whether the interrupted loop goes on
                continue
            case Op.BREQ:
                cycle += 1
                if zero == 0:
                    pc = b
                    cycle += 1
                continue
            case Op.BRNE:
                cycle += 1
                if zero != 0:
                    pc = b
                    cycle += 1
                continue
            case Op.BRNE_DELAY_SBIW:
                cycle += 1
                if zero != 0:
                    pc = b
                    cycle += 1
                    if cycle < limit and c.skip_idle:
                        cycle = idle.skip_sbiw_loop(data, int(code[b]) & 0xFFFFFFFF, cycle, limit)
                continue
            case Op.BRNE_DELAY_DEC:
                cycle += 1
                if zero != 0:
                    pc = b
                    cycle += 1
                    if cycle < limit and c.skip_idle:
                        cycle = idle.skip_dec_loop(data, int(code[b]) & 0xFFFFFFFF, cycle, limit)
                continue
            case Op.BRNE_DELAY_SUBI:
                cycle += 1
                if zero != 0:
                    pc = b
                    cycle += 1
                    if cycle < limit and c.skip_idle:
                        cycle = idle.skip_subi_loop(data, code, b, a, cycle, limit)
                continue
            case Op.BRCS_COUNT:
                cycle += 1
                if carry:
                    pc = b
                    cycle += 1
                    if cycle < limit and c.skip_idle:
                        cycle = idle.skip_count_loop(c, code, b, cycle, limit)
                continue
            case Op.BRCC_COUNT:
                cycle += 1
                if not carry:
                    pc = b
                    cycle += 1
                    if cycle < limit and c.skip_idle:
                        cycle = idle.skip_count_loop(c, code, b, cycle, limit)
                continue
            case Op.BRNE_COUNT:
                cycle += 1
                if zero != 0:
                    pc = b
                    cycle += 1
                    if cycle < limit and c.skip_idle:
                        cycle = idle.skip_count_loop(c, code, b, cycle, limit)
                continue
            case Op.BRCS:
                cycle += 1
                if carry:
                    pc = b
                    cycle += 1
                continue
            case Op.BRCC:
                cycle += 1
                if not carry:
                    pc = b
                    cycle += 1
                continue
            case Op.BRMI:
                cycle += 1
                if negative & 0x80:
                    pc = b
                    cycle += 1
                continue
            case Op.BRPL:
                cycle += 1
                if not negative & 0x80:
                    pc = b
                    cycle += 1
                continue
            case Op.BRVS:
                cycle += 1
                if overflow & 0x80:
                    pc = b
                    cycle += 1
                continue
            case Op.BRVC:
                cycle += 1
                if not overflow & 0x80:
                    pc = b
                    cycle += 1
                continue
            case Op.BRLT:
                cycle += 1
                if sign & 0x80:
                    pc = b
                    cycle += 1
                continue
            case Op.BRGE:
                cycle += 1
                if not sign & 0x80:
                    pc = b
                    cycle += 1
                continue
            case Op.BRHS:
                cycle += 1
                if half & 0x10:
                    pc = b
                    cycle += 1
                continue
            case Op.BRHC:
                cycle += 1
                if not half & 0x10:
                    pc = b
                    cycle += 1
                continue
            case Op.BRTS:
                cycle += 1
                if t_flag:
                    pc = b
                    cycle += 1
                continue
            case Op.BRTC:
                cycle += 1
                if not t_flag:
                    pc = b
                    cycle += 1
                continue
            case Op.BRIE:
                cycle += 1
                if i_flag:
                    pc = b
                    cycle += 1
                continue
            case Op.BRID:
                cycle += 1
                if not i_flag:
                    pc = b
                    cycle += 1
                continue
            case Op.CPSE:
                cycle += 1
                if data[a] == data[b & 0x1F]:
                    words = 1 + (b >> 15)
                    pc = (pc + words) & PC_MASK
                    cycle += words
                continue
            case Op.SBRC:
                cycle += 1
                if not byte(data, a) >> (b & 7) & 1:
                    words = 1 + (b >> 15)
                    pc = (pc + words) & PC_MASK
                    cycle += words
                continue
            case Op.SBRS:
                cycle += 1
                if byte(data, a) >> (b & 7) & 1:
                    words = 1 + (b >> 15)
                    pc = (pc + words) & PC_MASK
                    cycle += words
                continue
            case Op.LDD_Z:
                address = ((byte(data, 30) | byte(data, 31) << 8) + b) & 0xFFFF
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[a] = data[address]
                    continue
            case Op.LDD_Y:
                address = ((byte(data, 28) | byte(data, 29) << 8) + b) & 0xFFFF
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[a] = data[address]
                    continue
            case Op.LDS:
                address = b
                pc = (pc + 1) & PC_MASK
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[a] = data[address]
                    continue
            case Op.LD_X:
                address = byte(data, 26) | byte(data, 27) << 8
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[a] = data[address]
                    continue
            case Op.LD_X_INC:
                address = byte(data, 26) | byte(data, 27) << 8
                data[26] = (address + 1) & 0xFF
                data[27] = (address + 1) >> 8 & 0xFF
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[a] = data[address]
                    continue
            case Op.LD_DEC_X:
                address = ((byte(data, 26) | byte(data, 27) << 8) - 1) & 0xFFFF
                data[26] = address & 0xFF
                data[27] = address >> 8
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[a] = data[address]
                    continue
            case Op.LD_Y_INC:
                address = byte(data, 28) | byte(data, 29) << 8
                data[28] = (address + 1) & 0xFF
                data[29] = (address + 1) >> 8 & 0xFF
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[a] = data[address]
                    continue
            case Op.LD_DEC_Y:
                address = ((byte(data, 28) | byte(data, 29) << 8) - 1) & 0xFFFF
                data[28] = address & 0xFF
                data[29] = address >> 8
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[a] = data[address]
                    continue
            case Op.LD_Z_INC:
                address = byte(data, 30) | byte(data, 31) << 8
                data[30] = (address + 1) & 0xFF
                data[31] = (address + 1) >> 8 & 0xFF
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[a] = data[address]
                    continue
            case Op.LD_DEC_Z:
                address = ((byte(data, 30) | byte(data, 31) << 8) - 1) & 0xFFFF
                data[30] = address & 0xFF
                data[31] = address >> 8
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[a] = data[address]
                    continue
            case Op.STD_Z:
                access = Access.STORE.value
                address = ((byte(data, 30) | byte(data, 31) << 8) + b) & 0xFFFF
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[address] = data[a]
                    continue
            case Op.STD_Y:
                access = Access.STORE.value
                address = ((byte(data, 28) | byte(data, 29) << 8) + b) & 0xFFFF
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[address] = data[a]
                    continue
            case Op.STS:
                access = Access.STORE.value
                address = b
                pc = (pc + 1) & PC_MASK
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[address] = data[a]
                    continue
            case Op.ST_X:
                access = Access.STORE.value
                address = byte(data, 26) | byte(data, 27) << 8
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[address] = data[a]
                    continue
            case Op.ST_X_INC:
                access = Access.STORE.value
                address = byte(data, 26) | byte(data, 27) << 8
                value = byte(data, a)
                data[26] = (address + 1) & 0xFF
                data[27] = (address + 1) >> 8 & 0xFF
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[address] = value
                    continue
            case Op.ST_DEC_X:
                access = Access.STORE.value
                value = byte(data, a)
                address = ((byte(data, 26) | byte(data, 27) << 8) - 1) & 0xFFFF
                data[26] = address & 0xFF
                data[27] = address >> 8
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[address] = value
                    continue
            case Op.ST_Y_INC:
                access = Access.STORE.value
                address = byte(data, 28) | byte(data, 29) << 8
                value = byte(data, a)
                data[28] = (address + 1) & 0xFF
                data[29] = (address + 1) >> 8 & 0xFF
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[address] = value
                    continue
            case Op.ST_DEC_Y:
                access = Access.STORE.value
                value = byte(data, a)
                address = ((byte(data, 28) | byte(data, 29) << 8) - 1) & 0xFFFF
                data[28] = address & 0xFF
                data[29] = address >> 8
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[address] = value
                    continue
            case Op.ST_Z_INC:
                access = Access.STORE.value
                address = byte(data, 30) | byte(data, 31) << 8
                value = byte(data, a)
                data[30] = (address + 1) & 0xFF
                data[31] = (address + 1) >> 8 & 0xFF
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[address] = value
                    continue
            case Op.ST_DEC_Z:
                access = Access.STORE.value
                value = byte(data, a)
                address = ((byte(data, 30) | byte(data, 31) << 8) - 1) & 0xFFFF
                data[30] = address & 0xFF
                data[31] = address >> 8
                cycle += 2
                if SRAM_START <= address < DATA_SIZE:
                    data[address] = value
                    continue
            case Op.PUSH:
                cycle += 2
                if SRAM_START <= sp < DATA_SIZE:
                    data[sp] = data[a]
                    sp -= 1
                    continue
                push_outside(c, tape, sp, byte(data, a), cycle, here)
                sp = (sp - 1) & 0xFFFF
                limit = -1
                continue
            case Op.POP:
                sp = (sp + 1) & 0xFFFF
                cycle += 2
                if SRAM_START <= sp < DATA_SIZE:
                    data[a] = data[sp]
                    continue
                data[a] = pop_byte(c, tape, sp, cycle - 1, here)
                limit = -1
                continue
            case Op.LPM_Z:
                address = byte(data, 30) | byte(data, 31) << 8
                data[a] = self_programming.lpm(c, flash, address & 0x7FFF, cycle)
                cycle += 3
                continue
            case Op.LPM_Z_INC:
                address = byte(data, 30) | byte(data, 31) << 8
                value = self_programming.lpm(c, flash, address & 0x7FFF, cycle)
                data[30] = (address + 1) & 0xFF
                data[31] = (address + 1) >> 8 & 0xFF
                data[a] = value
                cycle += 3
                continue
            case Op.LPM_R0:
                address = byte(data, 30) | byte(data, 31) << 8
                data[0] = self_programming.lpm(c, flash, address & 0x7FFF, cycle)
                cycle += 3
                continue
            case Op.SPM:
                if c.next_event < cycle:
                    handle_due(c, tape, cycle - 1)
                if self_programming.spm(c, flash, code, here, cycle):
                    pc = here
                    reason = Stop.IMAGE.value
                    break
                cycle += self_programming.SPM_CYCLES + c.stall
                c.stall = 0
                idle.disturb(c, cycle)  # flash may have changed under a proven loop
                limit = -1
                continue
            case Op.IN:
                access = Access.LOAD.value
                address = b
                cycle += 1
            case Op.IN_SREG:
                data[a] = pack_sreg(carry, zero, negative, overflow, sign, half, t_flag, i_flag)
                cycle += 1
                continue
            case Op.IN_SPL:
                data[a] = sp & 0xFF
                cycle += 1
                continue
            case Op.IN_SPH:
                data[a] = sp >> 8
                cycle += 1
                continue
            case Op.OUT:
                access = Access.STORE.value
                address = b
                cycle += 1
            case Op.OUT_SREG:
                access = Access.STORE.value
                address = SREG
                cycle += 1
            case Op.OUT_SPL:
                sp = sp & 0xFF00 | byte(data, a)
                cycle += 1
                continue
            case Op.OUT_SPH:
                sp = sp & 0xFF | byte(data, a) << 8
                cycle += 1
                continue
            case Op.SBI:
                access = Access.SET_BIT.value
                address = b
                cycle += 2
            case Op.CBI:
                access = Access.CLEAR_BIT.value
                address = b
                cycle += 2
            case Op.SBIC:
                access = Access.SKIP_IF_CLEAR.value
                address = b & ~SKIP_TWO
                cycle += 1
            case Op.SBIS:
                access = Access.SKIP_IF_SET.value
                address = b & ~SKIP_TWO
                cycle += 1
            case Op.SLEEP:
                cycle += 1
                if byte(data, SMCR) & 1:
                    if c.next_event < cycle:
                        handle_due(c, tape, cycle - 1)
                    c.sampled = c.requests  # what the mode itself starts is seen a cycle later
                    c.sampled_at = cycle
                    sleep.fall_asleep(c, cycle)
                    limit = -1
                continue
            case Op.WDR:
                cycle += 1
                if c.next_event < cycle:
                    handle_due(c, tape, cycle - 1)
                watchdog.restart(c, cycle)
                c.io_touched |= Touch.VOLATILE
                limit = -1
                continue
            case Op.BREAK:  # without a debugger a one-cycle no-op (DWEN unprogrammed)
                cycle += 1
                continue
            case Op.BREAKPOINT:
                pc = here
                reason = Stop.BREAKPOINT.value
                break
            case Op.ERASED:
                entered = c.last_erased < 0
                distance = (here - c.last_erased) & PC_MASK
                c.last_erased = here
                if entered or distance == 0 or distance > 2:
                    report(c, Fault.ERASED_FLASH, cycle, here, 2 * here)
                cycle += 1
                if byte(data, 31) & 0x80:
                    words = 1 + (b >> 15)
                    pc = (pc + words) & PC_MASK
                    cycle += words
                if c.fault:
                    break
                continue
            case _:
                pc = here
                c.fault = Fault.UNDEFINED_OPCODE
                c.fault_address = 2 * here
                break

        # ---- an access outside SRAM --------------------------------------------------------------
        if access == Access.STORE:
            value = byte(data, a)
            if address == SREG:
                raised = (value >> 7) & ~i_flag
                carry = value & 1
                zero = (value & 2) ^ 2
                negative = (value & 4) << 5
                overflow = (value & 8) << 4
                sign = (value & 16) << 3
                half = (value & 32) >> 1
                t_flag = value >> 6 & 1
                i_flag = value >> 7
                if raised:
                    c.held_until = max(c.held_until, cycle + 1)
                    limit = min(horizon(c, 1, cycle, stop), ceiling)
                continue
            if address == SPL:
                sp = sp & 0xFF00 | value
                continue
            if address == SPH:
                sp = sp & 0xFF | value << 8
                continue
            write_data(c, tape, address, value, cycle, here)
        elif access == Access.SET_BIT or access == Access.CLEAR_BIT:
            on = access == Access.SET_BIT
            change_bit(c, tape, address, a, on, cycle, here)
        else:
            if address == SREG:
                value = pack_sreg(carry, zero, negative, overflow, sign, half, t_flag, i_flag)
            elif address == SPL:
                value = sp & 0xFF
            elif address == SPH:
                value = sp >> 8
            else:
                event = c.next_event
                value = read_data(c, tape, address, cycle - 1, here)
                if event < cycle or c.next_event < event or c.fault:
                    limit = min(horizon(c, i_flag, cycle - 1, stop), ceiling)
            if access == Access.LOAD:
                data[a] = value
            elif (value & a != 0) == (access == Access.SKIP_IF_SET):
                words = 1 + (b >> 15)
                pc = (pc + words) & PC_MASK
                cycle += words
            continue
        limit = after_store(c, i_flag, cycle, limit, stop, ceiling)
        cycle += c.stall
        c.stall = 0

    n[Slot.PC] = pc
    n[Slot.CYCLE] = cycle
    n[Slot.SP] = sp
    n[Slot.LIMIT] = limit
    n[Slot.CARRY] = carry
    n[Slot.ZERO] = zero
    n[Slot.NEGATIVE] = negative
    n[Slot.OVERFLOW] = overflow
    n[Slot.SIGN] = sign
    n[Slot.HALF] = half
    n[Slot.T] = t_flag
    n[Slot.I] = i_flag
    return reason
