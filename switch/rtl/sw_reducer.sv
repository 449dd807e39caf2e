// SPDX-License-Identifier: Apache-2.0
//
// The operands of all slots, a memory per child, and what was made of them: the packets' payloads
// that were sent. Words are elements as they lie in packets, the first byte lowest.
//
// Stores: of each inlet, words that come, one a cycle in which writes_i is 1, number write_at_i, to that
// with last_i. store_i of a child, one cycle, says before the first that those of its store_inlets_i are its operand
// in a slot, and take_i the same of take_inlet_i and what is sent in a slot. Both go on at the
// same time, of any number of inlets; storing_o are the children whose operand is being stored: of them
// no other may be until it is over. busy_o: one is, or what is sent.
//
// Reduction: start_i, one cycle in which ready_o is 1, reduces the first words_i words (one at least) of
// the children present_i in a slot, of whom there is one at least. Each word is read a cycle later than
// the one before, the first in the cycle after start_i: operands that are still being stored, too, may
// be reduced, with FastClock if that began three cycles before. The next one may start while results
// still come: written_o counts them, modulo, and begun_o those of all that were started. idle_o: both are the same. What needs no sum of floats takes
// the tree's quick way, if no result of the other one is still to come. take_i comes when idle_o is 1,
// and start_i when nothing is taken. With BeatCycles as many as there are children, words are read that
// many cycles apart, and go through one node (sw_reduce_shared) in place of a tree.
//
// Of two readers, seal and send, words are what lies where a frame of a slot has its word at_i,
// behind its head, of two cycles before, of those in which read_i is 1: in others it stays. The slot
// is there a cycle before.
module sw_reducer
  import sw_reduce_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Inlets = 18,
  parameter  int unsigned Children = 16,
  parameter  int unsigned Slots = 128,  // of all groups
  parameter  int unsigned OperandWords = 176,
  parameter  int unsigned BeatCycles = 1,  // or Children
  parameter  int unsigned FastClock = 0,
  localparam int unsigned SlotAtBits = $clog2(Slots),
  localparam int unsigned InletBits = Inlets > 1 ? $clog2(Inlets) : 1,
  localparam int unsigned TotalBits = WordAtBits + 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic [Inlets-1:0]      writes_i,
  input  logic [Inlets-1:0]      last_i,
  input  word_at_t [Inlets-1:0]  write_at_i,
  input  word_t [Inlets-1:0]     words_i,
  input  logic [Children-1:0]   store_i,
  input  logic [Children-1:0][InletBits-1:0] store_inlets_i,
  input  logic [SlotAtBits-1:0] store_slot_i,
  output logic [Children-1:0]   storing_o,
  output logic                  busy_o,
  input  logic                  take_i,
  input  logic [InletBits-1:0]   take_inlet_i,
  input  logic                  start_i,
  output logic                  ready_o,
  input  logic [SlotAtBits-1:0] slot_at_i,  // of start_i and take_i
  input  word_at_t              reduced_words_i,
  input  operation_t            operation_i,
  input  logic [Children-1:0]   present_i,
  output logic                  idle_o,
  output logic [TotalBits-1:0]  begun_o,
  output logic [TotalBits-1:0]  written_o,
  input  logic [SlotAtBits-1:0] seal_slot_i,
  input  logic                  seal_read_i,
  input  word_at_t              seal_at_i,
  output word_t                 seal_word_o,
  input  logic [SlotAtBits-1:0] send_slot_i,
  input  logic                  send_read_i,
  input  word_at_t              send_at_i,
  output word_t                 send_word_o
);

  localparam int unsigned Words = Slots * OperandWords;
  localparam int unsigned AtBits = $clog2(Words);
  localparam int unsigned StoreCycles = FastClock;  // between inlets and memories
  typedef logic [AtBits-1:0] at_t;

  function automatic at_t base_of(logic [SlotAtBits-1:0] slot_at);
    return at_t'(slot_at) * at_t'(OperandWords);
  endfunction

  // What is read of all operands, and on its way to and through the tree.
  logic reads_q, read_valid_q, valid_q;
  logic starts_quick, quick_q, quick_1_q, quick_2_q;
  word_at_t left_q;  // words after this one
  logic is_last_q;   // none
  at_t read_q, result_at;
  operation_t operation_q, operation_1_q, operation_2_q;
  logic [Children-1:0] present_q, present_1_q, present_2_q;
  logic [Children-1:0][WordBits-1:0] operands;
  logic reduced_valid, reduced_quick, writes_reduced;
  word_t reduced;
  logic [TotalBits-1:0] begun_q, written_q, slow_due_q;  // slow: words that do not come quickly

  logic [Children-1:0] storing_q;
  for (genvar child = 0; child < Children; ++child) begin : g_child
    word_t memory[Words], operand_q;
    logic [InletBits-1:0] inlet_q;
    at_t base_q, at;
    logic writes;
    word_t word;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        storing_q[child] <= 1'b0;
      end else if (store_i[child]) begin
        storing_q[child] <= 1'b1;
      end else if (writes_i[inlet_q] && last_i[inlet_q]) begin
        storing_q[child] <= 1'b0;
      end
    end
    always_ff @(posedge clk_i) begin
      if (store_i[child]) begin
        inlet_q <= store_inlets_i[child];
        base_q <= base_of(store_slot_i);
      end
      if (writes) memory[at] <= word;
      operand_q <= memory[read_q];
      operands[child] <= operand_q;
    end

    sw_delay #(
      .Width (1 + AtBits + WordBits),
      .Cycles(StoreCycles)
    ) u_store (
      .clk_i,
      .value_i({storing_q[child] && writes_i[inlet_q], base_q + at_t'(write_at_i[inlet_q]),
          words_i[inlet_q]}),
      .value_o({writes, at, word})
    );
  end

  logic taking_q;
  logic [InletBits-1:0] take_inlet_q;
  at_t take_base_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      taking_q <= 1'b0;
    end else begin
      taking_q <= take_i || (taking_q && !(writes_i[take_inlet_q] && last_i[take_inlet_q]));
    end
  end
  assign storing_o = storing_q;
  assign busy_o = storing_q != '0 || taking_q;

  // The word that is read is another one from the next cycle on; and is it since this cycle.
  logic steps, stepped;
  assign ready_o = (!reads_q || is_last_q) && !taking_q && steps;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reads_q <= 1'b0;
      read_valid_q <= 1'b0;
      valid_q <= 1'b0;
      begun_q <= '0;
      written_q <= '0;
      slow_due_q <= '0;
    end else begin
      if (steps) reads_q <= start_i || (reads_q && !is_last_q);
      read_valid_q <= reads_q && stepped;
      valid_q <= read_valid_q;
      if (start_i) begun_q <= begun_q + TotalBits'(reduced_words_i);
      written_q <= written_q + TotalBits'(writes_reduced);
      slow_due_q <= slow_due_q + (start_i && !starts_quick ? TotalBits'(reduced_words_i) : '0) -
          TotalBits'(reduced_valid && !reduced_quick);
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      read_q <= base_of(slot_at_i);
      left_q <= reduced_words_i - 1'b1;
      is_last_q <= reduced_words_i == word_at_t'(1);
      operation_q <= operation_i;
      quick_q <= starts_quick;
      present_q <= present_i;
    end else if (steps) begin
      read_q <= read_q + 1'b1;
      left_q <= left_q - 1'b1;
      is_last_q <= left_q == word_at_t'(1);
    end
    {operation_1_q, present_1_q, quick_1_q} <= {operation_q, present_q, quick_q};
    {operation_2_q, present_2_q, quick_2_q} <= {operation_1_q, present_1_q, quick_1_q};
    if (take_i) begin
      take_inlet_q <= take_inlet_i;
      take_base_q <= base_of(slot_at_i);
    end
  end
  assign starts_quick = BeatCycles == 1 && is_quick(operation_i) && slow_due_q == '0;
  assign begun_o = begun_q;
  assign written_o = written_q;
  if (FastClock != 0) begin : g_idle_later
    // Who starts something sees a cycle later that it is not idle any more, and does not look before.
    always_ff @(posedge clk_i) idle_o <= begun_q == written_q;
  end else begin : g_idle_now
    assign idle_o = begun_q == written_q;
  end

  if (BeatCycles == 1) begin : g_tree
    localparam int unsigned TreeCycles = $clog2(Children) * CombineCycles;
    localparam int unsigned QuickTreeCycles = $clog2(Children) * QuickCycles;
    at_t slow_result_at, quick_result_at;
    logic unused_present;

    assign {steps, stepped} = '1;

    sw_reduce_tree #(
      .Ports(Children)
    ) u_tree (
      .clk_i,
      .rst_ni,
      .valid_i    (valid_q),
      .quick_i    (quick_2_q),
      .operation_i(operation_2_q),
      .present_i  (present_2_q),
      .beats_i    (operands),
      .valid_o    (reduced_valid),
      .quick_o    (reduced_quick),
      .present_o  (unused_present),
      .beat_o     (reduced)
    );

    sw_delay #(
      .Width (AtBits),
      .Cycles(QuickTreeCycles + 2)
    ) u_quick_result_at (
      .clk_i,
      .value_i(read_q),
      .value_o(quick_result_at)
    );

    sw_delay #(
      .Width (AtBits),
      .Cycles(TreeCycles - QuickTreeCycles)
    ) u_slow_result_at (
      .clk_i,
      .value_i(quick_result_at),
      .value_o(slow_result_at)
    );
    assign result_at = reduced_quick ? quick_result_at : slow_result_at;
  end else begin : g_shared
    localparam int unsigned PhaseBits = $clog2(BeatCycles);
    logic [PhaseBits-1:0] phase_q, phase_1_q, phase_2_q;

    if (BeatCycles != Children) begin : g_bad_cycles
      $error("a word takes 1 cycle, or as many as there are children");
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        phase_q <= '0;
        steps <= 1'b0;
      end else begin
        phase_q <= steps ? '0 : phase_q + 1'b1;
        steps <= phase_q == PhaseBits'(BeatCycles - 2) && !steps;
      end
    end
    always_ff @(posedge clk_i) {phase_1_q, phase_2_q} <= {phase_q, phase_1_q};
    assign stepped = phase_q == '0;

    sw_reduce_shared #(
      .Ports(Children)
    ) u_shared (
      .clk_i,
      .rst_ni,
      .phase_i    (phase_2_q),
      .valid_i    (valid_q),
      .operation_i(operation_2_q),
      .present_i  (present_2_q),
      .beats_i    (operands),
      .valid_o    (reduced_valid),
      .beat_o     (reduced)
    );

    sw_delay #(
      .Width (AtBits),
      .Cycles(shared_cycles(Children) + 2)
    ) u_result_at (
      .clk_i,
      .value_i(read_q),
      .value_o(result_at)
    );

    logic unused_quick;
    assign reduced_quick = 1'b0;
    assign unused_quick = quick_2_q;
  end

  // What was made, and what a parent made.
  logic writes_sent;
  at_t sent_at;
  word_t to_send;
  sw_delay_flags #(
    .Width (2),
    .Cycles(StoreCycles)
  ) u_writes_sent (
    .clk_i,
    .rst_ni,
    .flags_i({reduced_valid, reduced_valid || (taking_q && writes_i[take_inlet_q])}),
    .flags_o({writes_reduced, writes_sent})
  );
  sw_delay #(
    .Width (AtBits + WordBits),
    .Cycles(StoreCycles)
  ) u_sent (
    .clk_i,
    .value_i({reduced_valid ? result_at : take_base_q + at_t'(write_at_i[take_inlet_q]),
        reduced_valid ? reduced : words_i[take_inlet_q]}),
    .value_o({sent_at, to_send})
  );

  // The same twice, for two readers.
  logic [1:0] sent_reads;
  logic [1:0][SlotAtBits-1:0] sent_slots;
  word_at_t [1:0] sent_read_at;
  word_t [1:0] sent_words;
  assign sent_reads = {send_read_i, seal_read_i};
  assign sent_slots = {send_slot_i, seal_slot_i};
  assign sent_read_at = {send_at_i, seal_at_i};
  assign {send_word_o, seal_word_o} = sent_words;
  for (genvar i = 0; i < 2; ++i) begin : g_sent
    word_t memory[Words], word_q;
    at_t base_q;
    always_ff @(posedge clk_i) begin
      base_q <= base_of(sent_slots[i]) - at_t'(HeadWords);
      if (writes_sent) memory[sent_at] <= to_send;
      if (sent_reads[i]) begin
        word_q <= memory[base_q+at_t'(sent_read_at[i])];
        sent_words[i] <= word_q;
      end
    end
  end

  starts_when_ready :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> ready_o);
  takes_when_nothing_comes :
  assert property (@(posedge clk_i) disable iff (!rst_ni) take_i |-> begun_q == written_q && !taking_q);
  words_fit :
  assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |->
      reduced_words_i != '0 && 32'(reduced_words_i) <= OperandWords && present_i != '0);
  one_result_at_a_time :
  assert property (@(posedge clk_i) disable iff (!rst_ni) reduced_valid |-> !taking_q);
  one_operand_of_a_child :
  assert property (@(posedge clk_i) disable iff (!rst_ni) (store_i & storing_q) == '0);

endmodule
