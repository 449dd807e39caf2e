// SPDX-License-Identifier: Apache-2.0
//
// Of an inlet: whether a packet was made with the key of the job that it names. Each has its own,
// so that packets that come at once are checked at once.
//
// A packet is looked at as soon as its head is there (packet_valid_i), and its tag is made while the
// rest of it still comes: what it turns out to be is there with settled_i (sw_parser). checked_o is 1
// for the cycle in which it is known, with authentic_o; a frame that is no packet of a known job is not
// authentic. packet_i is the next one from the next cycle on. soon_o is 1 from a few cycles before
// that: all words of the packet have come, and few of them have not gone into its tag. again_i, one cycle, with what jobs_i is from
// the next one on: a packet that is not checked yet is checked from the beginning. word_i is the
// frame's word word_at_o of two cycles before, of those in which read_o is 1; there_i: it can be read.
module sw_check
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter int unsigned Jobs = 4,
  parameter int unsigned TagWordCycles = 1,
  parameter int unsigned FastClock = 0
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  job_entry_t [Jobs-1:0] jobs_i,
  input  logic                  again_i,
  input  logic                  packet_valid_i,
  input  packet_t               packet_i,
  input  logic                  likely_i,
  input  logic                  settled_i,
  output logic                  read_o,
  output word_at_t              word_at_o,
  input  logic                  there_i,
  input  word_t                 word_i,
  output logic                  soon_o,
  output logic                  checked_o,
  output logic                  authentic_o
);

  typedef enum logic [1:0] {
    StWait,
    StSort,
    StTag
  } state_e;

  state_e state_q, state_d;
  logic tag_start, tag_valid, tag_soon, starts, clears, unused_runs;
  logic [63:0] tag;
  header_t header;
  assign header = packet_i.head.header;

  logic [Jobs-1:0] hits_q;
  logic is_known;
  logic [127:0] key;
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Jobs; ++i) begin
      hits_q[i] <= jobs_i[i].valid && jobs_i[i].job == header.job;
    end
  end
  always_comb begin
    key = '0;
    for (int unsigned i = 0; i < Jobs; ++i) if (hits_q[i]) key = jobs_i[i].key;
  end

  sw_tagger #(
    .WordCycles(TagWordCycles),
    .ReadsHead(TagWordCycles == 4 ? 1 : 0)
  ) u_tagger (
    .clk_i,
    .rst_ni,
    .start_i        (starts),
    .clear_i        (clears),
    .key_i          (key),
    .header_i       (header),
    .payload_bytes_i(bytes_t'(packet_i.head.udp_length - 16'(UdpBytes + HeaderBytes))),
    .read_o,
    .word_at_o,
    .there_i,
    .word_i,
    .runs_o         (unused_runs),
    .soon_o         (tag_soon),
    .tag_valid_o    (tag_valid),
    .tag_o          (tag)
  );

  assign tag_start = state_q == StSort && state_d == StTag;
  assign soon_o = state_q == StTag && !starts && tag_soon && settled_i;

  // Whether it is the packet's, and whether it is no packet with a tag that could be right; with FastClock,
  // a cycle later, as are a tag's start and an end without one.
  logic is_made, is_right, is_other, is_there;  // there: what is known is of this packet
  if (FastClock != 0) begin : g_later
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        {is_made, starts, clears, is_other, is_known, is_there} <= '0;
      end else begin
        is_made <= tag_valid && state_q == StTag && state_d == StTag;
        starts <= tag_start;
        clears <= state_q == StTag && state_d != StTag;
        is_other <= settled_i && (packet_i.verdict != VerdictPacket || hits_q == '0);
        is_known <= hits_q != '0;
        is_there <= state_q == StWait && packet_valid_i && !again_i;
      end
    end
    always_ff @(posedge clk_i) is_right <= tag == header.tag;
  end else begin : g_now
    assign is_made = tag_valid;
    assign starts = tag_start;
    assign clears = state_q == StTag && state_d != StTag;
    assign is_other = settled_i && (packet_i.verdict != VerdictPacket || hits_q == '0);
    assign is_known = hits_q != '0;
    assign is_there = 1'b1;
    assign is_right = tag == header.tag;
  end

  always_comb begin
    state_d = state_q;
    checked_o = 1'b0;
    unique case (state_q)
      StWait: if (packet_valid_i && is_there) state_d = StSort;
      StSort: begin
        if (is_other) begin
          checked_o = 1'b1;
          state_d = StWait;
        end else if (is_known && (likely_i || settled_i)) begin
          state_d = StTag;
        end
      end
      default: begin
        if (is_other || (is_made && settled_i)) begin
          checked_o = 1'b1;
          state_d = StWait;
        end else if (is_made) begin
          state_d = StSort;  // the frame is longer than it says: what it is comes with its end
        end
      end
    endcase
    if (again_i) state_d = StWait;
  end
  assign authentic_o = state_q == StTag && !is_other && is_right;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StWait;
    end else begin
      state_q <= state_d;
    end
  end

  logic unused_packet;
  assign unused_packet = ^packet_i;

endmodule
