// SPDX-License-Identifier: Apache-2.0
//
// What is to be sent, in the order in which it is given (answer_t): three at a time, one in each of
// reduction, seal and sending. The tag is made of results as they come, while the next operands are
// reduced and the frame before is sent. A frame begins when all words have gone into its tag, if that
// is there before its word is sent.
//
// answer_i is taken in a cycle in which valid_i and ready_o are 1; with FastClock it stays from then until
// ready_o is 1 again. Of operands that are reduced, the
// last one is being stored since then (sw_reducer). slot_busy_o: what is sent, or will be, of slot
// slot_at_i is under way: of such a slot nothing may be given, nor stored. idle_o: nothing is. take_o, one
// cycle, begins to store the operand of inlet take_inlet_o as what is sent (sw_reducer). Frames of others
// are read while their inlet's frame_reads_o is 1: word_i is the word frame_at_o of two cycles before,
// of those in which frame_read_o is 1; frame_done_o, one cycle, is the end.
//
// Frames leave by AXI4-Streams as sw_parser's, to several at once, but to those behind the same port
// in the order of their numbers. Who does not take a frame stops all. A frame to a port that is not
// there is dropped: lost_o is 1.
module sw_sender
  import sw_protocol_pkg::*;
  import sw_reduce_pkg::operation_t;
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Ports = 18,
  parameter  int unsigned Inlets = Ports,
  parameter  int unsigned Children = 16,
  parameter  int unsigned Groups = 4,
  parameter  int unsigned Slots = 128,  // of all groups
  parameter  int unsigned OperandBytes = BurstOperandBytes,
  parameter  int unsigned TagWordCycles = 1,
  parameter  int unsigned BeatCycles = 1,
  parameter  int unsigned FastClock = 0,
  localparam int unsigned InletBits = Inlets > 1 ? $clog2(Inlets) : 1,
  localparam int unsigned GroupBits = $clog2(Groups),
  localparam int unsigned SlotAtBits = $clog2(Slots)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic [47:0]           own_mac_i,
  input  logic [31:0]           own_ip_i,
  input  logic [15:0]           own_udp_port_i,
  input  logic                  valid_i,
  output logic                  ready_o,
  input  answer_t               answer_i,
  input  logic [SlotAtBits-1:0] slot_at_i,
  output logic                  slot_busy_o,
  output logic                  idle_o,
  // Operands, as sw_reducer has them.
  input  logic [Inlets-1:0]      writes_i,
  input  logic [Inlets-1:0]      last_i,
  input  word_at_t [Inlets-1:0]  write_at_i,
  input  word_t [Inlets-1:0]     words_i,
  input  logic [Children-1:0]   store_i,
  input  logic [Children-1:0][InletBits-1:0] store_inlets_i,
  output logic [Children-1:0]   storing_o,
  output logic                  take_o,
  output logic [InletBits-1:0]   take_inlet_o,
  output logic [Inlets-1:0]      frame_reads_o,
  output logic                  frame_read_o,
  output word_at_t              frame_at_o,
  output logic [Inlets-1:0]      frame_done_o,
  output logic                  write_tag_o,
  output logic [SlotAtBits-1:0] tag_at_o,
  output logic [63:0]           tag_o,
  // Of a group, its parent and one of its children, and of a job its key, without a clock.
  output logic [GroupBits-1:0]  target_group_at_o,
  output logic [15:0]           target_o,
  input  address_t              target_i,
  input  address_t              target_parent_i,
  output logic [15:0]           key_at_o,
  input  logic [127:0]          key_i,
  // The first of a group's children behind each port, and those that are no such, without a clock.
  output logic [GroupBits-1:0]  first_group_at_o,
  input  logic [Ports-1:0]      first_there_i,
  output logic [GroupBits-1:0]  address_group_at_o,
  input  address_t [Ports-1:0]  first_i,
  input  logic [Children-1:0]   not_first_i,
  output logic                  lost_o,
  output logic [Ports-1:0]      m_valid_o,
  input  logic [Ports-1:0]      m_ready_i,
  output word_t [Ports-1:0]     m_data_o,
  output logic [WordBytes-1:0]  m_keep_o,
  output logic                  m_last_o
);

  localparam int unsigned Targets = Children > Ports ? Children : Ports;
  localparam int unsigned Addresses = FastClock != 0 ? 1 : Ports;  // of those that get it at once
  localparam int unsigned TotalBits = WordAtBits + 1;
  typedef logic [TotalBits-1:0] total_t;

  // From the last word of a tag on: the word of its length, the end, and 1 (sw_siphash). From where a
  // frame is given to be sent: sw_builder reads its first word 2 cycles later.
  localparam int unsigned TagEndCycles = 4 * TagWordCycles + 1;
  localparam bit StartsEarly = TagEndCycles < TagWordAt + 2;

  // To be reduced, or to be taken from an inlet.
  answer_t first_q;
  logic first_valid_q, stays_q, may_begin_q, begun_q, begins, first_over;
  total_t results_at_q, results_at;  // of all results, those before this one's
  logic reduce_ready, reducer_idle, reducer_busy;
  total_t begun, written;

  // To be sealed; and who gets it is looked for.
  answer_t second, second_q;  // with the tag, and without
  logic [63:0] second_tag_q;
  logic second_valid_q, second_free_q, enters_q, sealed_q, second_over, gives;
  logic hashes_q, is_nearly_sealed;
  total_t second_results_at_q;
  logic [Ports-1:0] to;  // those that get it at once
  logic is_first_round;  // ... each for its own first child; else at these addresses
  address_t [Addresses-1:0] addresses;

  // To be sent.
  answer_t third_q;
  header_t third_header;  // with the tag
  logic [63:0] third_tag_q;
  logic third_valid_q, third_free_q, third_lacks_tag_q, start_q, is_last_round_q, to_first_q;
  address_t [Addresses-1:0] to_address_q;
  bytes_t frame_bytes_q;
  logic [Inlets-1:0] third_from_q, frame_done;
  logic [Ports-1:0] to_q;

  assign ready_o = !first_valid_q;
  assign idle_o = !first_valid_q && !second_valid_q && !third_valid_q && !reducer_busy;
  assign slot_busy_o =
      (first_valid_q && first_q.has_slot && first_q.slot_at[SlotAtBits-1:0] == slot_at_i) ||
      (second_valid_q && second_q.has_slot && second_q.slot_at[SlotAtBits-1:0] == slot_at_i) ||
      (third_valid_q && third_q.has_slot && third_q.slot_at[SlotAtBits-1:0] == slot_at_i);

  // What is there in the cycle in which a place becomes valid stays. Free, a place is not valid: it is a
  // register of its own, and what is wide is kept by sw_record.
  logic first_valid, second_valid, third_valid, send_done;
  assign first_valid = valid_i || (first_valid_q && !first_over);
  assign second_valid = first_over || (second_valid_q && !second_over);
  assign third_valid = gives || (third_valid_q && !send_done);

  logic needs_reducer, reduce_start;
  assign needs_reducer = first_q.reduces || first_q.takes;
  assign reduce_start = first_valid_q && (may_begin_q || FastClock == 0) && !begun_q &&
      first_q.reduces && reduce_ready;
  assign take_o = first_valid_q && !begun_q && first_q.takes && reduce_ready && reducer_idle;
  assign take_inlet_o = first_q.inlet[InletBits-1:0];
  assign begins = reduce_start || take_o;
  assign first_over = first_valid_q && (begun_q || (FastClock == 0 && begins) || !needs_reducer) &&
      !second_valid_q;
  assign results_at = begun_q ? results_at_q : begun;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_valid_q <= 1'b0;
      {stays_q, may_begin_q, begun_q} <= '0;
    end else begin
      first_valid_q <= first_valid;
      stays_q <= first_valid_q && !first_over;
      may_begin_q <= stays_q && !first_over;
      begun_q <= (begun_q || begins) && !first_over;
    end
  end
  if (FastClock != 0) begin : g_first_stays
    assign first_q = answer_i;
    stays_while_it_is_first :
    assert property (@(posedge clk_i) disable iff (!rst_ni) first_valid_q |-> $stable(answer_i));
  end else begin : g_first
    sw_record #(
      .Width($bits(answer_t))
    ) u_first (
      .clk_i,
      .takes_next_i(!first_valid),
      .value_i     (answer_i),
      .value_o     (first_q)
    );
  end
  always_ff @(posedge clk_i) results_at_q <= results_at;

  word_t seal_word, send_word, sent_word, sent_word_here;
  word_at_t seal_at, send_at;
  logic seal_read, send_read;

  operation_t operation;
  assign operation.op = first_q.op;
  assign operation.element = first_q.element;

  sw_reducer #(
    .Inlets(Inlets),
    .Children(Children),
    .Slots(Slots),
    .OperandWords(OperandBytes / WordBytes),
    .BeatCycles(BeatCycles),
    .FastClock(FastClock)
  ) u_reducer (
    .clk_i,
    .rst_ni,
    .writes_i,
    .last_i,
    .write_at_i,
    .words_i,
    .store_i,
    .store_inlets_i,
    .store_slot_i   (slot_at_i),
    .storing_o,
    .busy_o         (reducer_busy),
    .take_i         (take_o),
    .take_inlet_i   (take_inlet_o),
    .start_i        (reduce_start),
    .ready_o        (reduce_ready),
    .slot_at_i      (first_q.slot_at[SlotAtBits-1:0]),
    .reduced_words_i(words_of(first_q.bytes)),
    .operation_i    (operation),
    .present_i      (first_q.present[Children-1:0]),
    .idle_o         (reducer_idle),
    .begun_o        (begun),
    .written_o      (written),
    .seal_slot_i    (second_q.slot_at[SlotAtBits-1:0]),
    .seal_read_i    (seal_read),
    .seal_at_i      (seal_at),
    .seal_word_o    (seal_word),
    .send_slot_i    (third_q.slot_at[SlotAtBits-1:0]),
    .send_read_i    (send_read),
    .send_at_i      (send_at),
    .send_word_o    (send_word)
  );

  // Results go into the tag as they come.
  logic tag_valid, tag_runs, unused_soon;
  logic [63:0] tag;
  total_t results;  // words of a frame that are there, with its head
  sw_delay #(
    .Width (TotalBits),
    .Cycles(FastClock)
  ) u_results (
    .clk_i,
    .value_i(written - second_results_at_q + total_t'(HeadWords)),
    .value_o(results)
  );

  sw_tagger #(
    .WordCycles(TagWordCycles)
  ) u_tagger (
    .clk_i,
    .rst_ni,
    .start_i        (enters_q && second_q.seals),
    .clear_i        (1'b0),
    .key_i,
    .header_i       (second.header),
    .payload_bytes_i(second_q.bytes),
    .read_o         (seal_read),
    .word_at_o      (seal_at),
    .there_i        (results > total_t'(seal_at)),
    .word_i         (seal_word),
    .runs_o         (tag_runs),
    .soon_o         (unused_soon),
    .tag_valid_o    (tag_valid),
    .tag_o          (tag)
  );

  assign write_tag_o = second_q.writes_tag && (second_q.seals ? tag_valid : enters_q);
  assign tag_at_o = second_q.slot_at[SlotAtBits-1:0];
  assign tag_o = second_q.seals ? tag : second_tag_q;

  // Those that get it.
  logic gathered, is_last_round;
  sw_rounds #(
    .Ports(Ports),
    .Children(Children),
    .FastClock(FastClock)
  ) u_rounds (
    .clk_i,
    .rst_ni,
    .free_i       (second_free_q),
    .targets_i    (first_q.all ? Targets'(not_first_i) : first_q.targets[Targets-1:0]),
    .first_i      (first_over && first_q.all),
    .first_there_i,
    .valid_i      (second_valid_q),
    .to_i         (second_q.to),
    .source_i     (second_q.source),
    .target_o,
    .target_i,
    .target_parent_i,
    .gathered_o   (gathered),
    .is_last_o    (is_last_round),
    .round_o      (to),
    .is_first_o   (is_first_round),
    .addresses_o  (addresses),
    .take_i       (gives),
    .lost_o
  );
  assign target_group_at_o = second_q.group_at[GroupBits-1:0];
  assign key_at_o = second_q.job_at;
  assign first_group_at_o = first_q.group_at[GroupBits-1:0];
  assign address_group_at_o = third_q.group_at[GroupBits-1:0];

  // A round is given to be sent, or there is none.
  assign is_nearly_sealed = sealed_q || (StartsEarly && hashes_q && !tag_runs);
  logic may_give, may_give_now, may_end, may_end_now;
  assign may_give_now = second_valid_q && is_nearly_sealed && gathered && to != '0;
  assign may_end_now = second_valid_q && sealed_q && is_last_round;
  if (FastClock != 0) begin : g_may_later
    // Both stay as they are until then.
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        {may_give, may_end} <= '0;
      end else begin
        may_give <= may_give_now && !gives;
        may_end <= may_end_now && !second_over;
      end
    end
  end else begin : g_may_now
    assign may_give = may_give_now;
    assign may_end = may_end_now;
  end
  assign gives = may_give && !third_valid_q;
  assign second_over = may_end && (gives || to == '0);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      second_valid_q <= 1'b0;
      second_free_q <= 1'b1;
      enters_q <= 1'b0;
      sealed_q <= 1'b0;
      hashes_q <= 1'b0;
      third_lacks_tag_q <= 1'b0;
      third_valid_q <= 1'b0;
      third_free_q <= 1'b1;
      start_q <= 1'b0;
    end else begin
      second_valid_q <= second_valid;
      second_free_q <= !second_valid;
      enters_q <= first_over;
      sealed_q <= first_over ? !first_q.seals : sealed_q || tag_valid;
      hashes_q <= enters_q ? second_q.seals : hashes_q && !tag_valid;
      third_lacks_tag_q <= (gives ? !sealed_q : third_lacks_tag_q) && !tag_valid;
      third_valid_q <= third_valid;
      third_free_q <= !third_valid;
      start_q <= gives;
    end
  end
  sw_record #(
    .Width($bits(answer_t))
  ) u_second (
    .clk_i,
    .takes_next_i(!second_valid),
    .value_i     (first_q),
    .value_o     (second_q)
  );
  sw_record #(
    .Width($bits(answer_t))
  ) u_third (
    .clk_i,
    .takes_next_i(!third_valid),
    .value_i     (second),
    .value_o     (third_q)
  );
  sw_record #(
    .Width(Addresses * $bits(address_t))
  ) u_to_address (
    .clk_i,
    .takes_next_i(!third_valid),
    .value_i     (addresses),
    .value_o     (to_address_q)
  );
  always_comb begin
    second = second_q;
    second.header.tag = second_tag_q;
    third_header = third_q.header;
    third_header.tag = third_tag_q;
  end
  always_ff @(posedge clk_i) begin
    if (second_free_q) begin
      second_tag_q <= first_q.header.tag;
      second_results_at_q <= results_at;
    end else if (tag_valid) begin
      second_tag_q <= tag;
    end
    if (third_free_q) begin
      to_first_q <= is_first_round;
      frame_bytes_q <= second_q.bytes + (second_q.to == ToPorts ? '0 : bytes_t'(HeadBytes));
      third_from_q <= Inlets'(second_q.to == ToPorts) << second_q.inlet;
      to_q <= to;
      is_last_round_q <= is_last_round;
    end
    if (third_lacks_tag_q || (third_free_q && !sealed_q)) begin
      third_tag_q <= tag;
    end else if (third_free_q) begin
      third_tag_q <= second_tag_q;
    end
  end

  logic raw;
  word_t built;
  own_e built_own;
  logic [WordBytes-1:0] built_keep;
  logic built_valid, built_ready, built_last, unused_done;
  logic [19:0] ipv4_sum_so_far;
  head_t head;
  assign raw = third_q.to == ToPorts;

  sw_head u_head (
    .clk_i,
    .own_mac_i,
    .own_ip_i,
    .own_udp_port_i,
    .header_i       (third_header),
    .payload_bytes_i(third_q.bytes),
    .head_o         (head),
    .sum_o          (ipv4_sum_so_far)
  );

  assign frame_read_o = send_read;
  assign frame_at_o = send_at;
  // Where a frame of somebody else's lies; else nowhere.
  always_comb begin
    sent_word = raw ? '0 : send_word;
    for (int unsigned i = 0; i < Inlets; ++i) if (third_from_q[i]) sent_word |= words_i[i];
  end
  sw_delay #(
    .Width (WordBits),
    .Cycles(FastClock)
  ) u_sent_word (
    .clk_i,
    .value_i(sent_word),
    .value_o(sent_word_here)
  );
  assign frame_reads_o = third_valid_q ? third_from_q : '0;
  assign frame_done = send_done && is_last_round_q ? third_from_q : '0;
  sw_delay_flags #(
    .Width (Inlets),
    .Cycles(FastClock)
  ) u_frame_done (
    .clk_i,
    .rst_ni,
    .flags_i(frame_done),
    .flags_o(frame_done_o)
  );

  sw_builder #(
    .FastClock(FastClock)
  ) u_builder (
    .clk_i,
    .rst_ni,
    .start_i    (start_q),
    .raw_i      (raw),
    .head_i     (head),
    .bytes_i    (frame_bytes_q),
    .read_o     (send_read),
    .word_at_o  (send_at),
    .word_i     (sent_word_here),
    .m_valid_o  (built_valid),
    .m_ready_i  (built_ready),
    .m_own_o    (built_own),
    .m_data_o   (built),
    .m_keep_o   (built_keep),
    .m_last_o   (built_last),
    .done_o     (unused_done)
  );

  sw_spread #(
    .Ports(Ports),
    .FastClock(FastClock)
  ) u_spread (
    .clk_i,
    .rst_ni,
    .valid_i    (built_valid),
    .ready_o    (built_ready),
    .own_i      (built_own),
    .data_i     (built),
    .keep_i     (built_keep),
    .last_i     (built_last),
    .to_i       (to_q),
    .first_i    (to_first_q),
    .first_addresses_i(first_i),
    .addresses_i(to_address_q),
    .sum_i      (ipv4_sum_so_far),
    .done_o     (send_done),
    .m_valid_o,
    .m_ready_i,
    .m_data_o,
    .m_keep_o,
    .m_last_o
  );

  gives_and_ends_what_may :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      (!gives || may_give_now) && (!second_over || may_end_now));
  what_is_free_is_not_valid :
  assert property (@(posedge clk_i) disable iff (!rst_ni) {second_free_q, third_free_q} ==
      ~{second_valid_q, third_valid_q});
  tag_is_there_in_time :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      third_lacks_tag_q && !raw |-> send_at <= word_at_t'(TagWordAt));

  logic unused_bits;
  assign unused_bits = ^{first_q, second_q, third_q, first_i};

  frames_of_others_lead_somewhere :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      second_valid_q && second_q.to == ToPorts |-> !lost_o && second_q.targets != '0);

endmodule
