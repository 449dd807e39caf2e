// SPDX-License-Identifier: Apache-2.0
//
// The operands of all slots, a memory per child, and what was made of them: the packets' payloads
// that were sent. Words are elements as they lie in packets, the first byte lowest.
//
// slot_at_i is there a cycle before anything is done with its slot. write_i puts word_i at word
// write_at_i of an operand of child_i, or of what is sent (sent_i). start_i, one cycle, reduces the
// first words_i words (one at least) of the children present_i, of whom there is one at least, and
// done_o says, one cycle, that all of it can be read: sent_o is what lies where a frame has its word
// read_at_i, behind its head, of two cycles before, of those in which read_i is 1: in others it stays.
// Nothing is written from start_i to done_o, and slot_at_i and words_i stay.
module sw_reducer
  import sw_reduce_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Children = 16,
  parameter  int unsigned Slots = 128,  // of all groups
  parameter  int unsigned OperandWords = 176,
  localparam int unsigned SlotAtBits = $clog2(Slots),
  localparam int unsigned ChildBits = $clog2(Children)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic [SlotAtBits-1:0] slot_at_i,
  input  logic                  write_i,
  input  logic                  sent_i,
  input  logic [ChildBits-1:0]  child_i,
  input  word_at_t              write_at_i,
  input  word_t                 word_i,
  input  logic                  start_i,
  input  word_at_t              words_i,
  input  operation_t            operation_i,
  input  logic [Children-1:0]   present_i,
  output logic                  done_o,
  input  logic                  read_i,
  input  word_at_t              read_at_i,
  output word_t                 sent_o
);

  localparam int unsigned Words = Slots * OperandWords;
  localparam int unsigned AtBits = $clog2(Words);

  logic reads_q, read_valid_q, valid_q, reduced_valid, reduced_present, writes_sent, unused_present;
  word_at_t read_q, reduced_q;  // the next word of operands, and of the result
  word_at_t sent_at;
  logic [Children-1:0][WordBits-1:0] operands;
  word_t reduced, sent[Words], sent_q;
  logic [AtBits-1:0] base_q, frame_base_q;

  always_ff @(posedge clk_i) begin
    base_q <= AtBits'(slot_at_i) * AtBits'(OperandWords);
    frame_base_q <= AtBits'(slot_at_i) * AtBits'(OperandWords) - AtBits'(HeadWords);
  end

  for (genvar child = 0; child < Children; ++child) begin : g_child
    word_t memory[Words], operand_q;
    always_ff @(posedge clk_i) begin
      if (write_i && !sent_i && child_i == ChildBits'(child)) begin
        memory[base_q+AtBits'(write_at_i)] <= word_i;
      end
      operand_q <= memory[base_q+AtBits'(read_q)];
      operands[child] <= operand_q;
    end
  end

  sw_reduce_tree #(
    .Ports(Children)
  ) u_tree (
    .clk_i,
    .rst_ni,
    .valid_i    (valid_q),
    .operation_i,
    .present_i,
    .beats_i    (operands),
    .valid_o    (reduced_valid),
    .present_o  (reduced_present),
    .beat_o     (reduced)
  );
  assign unused_present = reduced_present;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reads_q <= 1'b0;
      read_valid_q <= 1'b0;
      valid_q <= 1'b0;
      done_o <= 1'b0;
    end else begin
      if (start_i) begin
        reads_q <= 1'b1;
      end else if (read_q == words_i - 1'b1) begin
        reads_q <= 1'b0;
      end
      read_valid_q <= reads_q;
      valid_q <= read_valid_q;
      done_o <= reduced_valid && reduced_q == words_i - 1'b1;
    end
  end

  assign sent_at = reduced_valid ? reduced_q : write_at_i;
  assign writes_sent = reduced_valid || (write_i && sent_i);

  always_ff @(posedge clk_i) begin
    read_q <= start_i ? '0 : read_q + word_at_t'(reads_q);
    reduced_q <= start_i ? '0 : reduced_q + word_at_t'(reduced_valid);
    if (writes_sent) begin
      sent[base_q+AtBits'(sent_at)] <= reduced_valid ? reduced : word_i;
    end
    if (read_i) begin
      sent_q <= sent[frame_base_q+AtBits'(read_at_i)];
      sent_o <= sent_q;
    end
  end

  words_fit :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      (start_i |-> words_i != '0 && 32'(words_i) <= OperandWords && present_i != '0));
  write_fits :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      (write_i |-> 32'(write_at_i) < OperandWords && !reduced_valid));

endmodule
