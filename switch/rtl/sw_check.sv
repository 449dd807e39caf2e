// SPDX-License-Identifier: Apache-2.0
//
// Of a port: whether the packet that it keeps was made with the key of the job that it names. Each
// port has its own, so that packets that come at once are checked at once.
//
// checked_o is 1 from where it is known, with authentic_o, to done_i; a frame that is no packet of a
// known job is checked as soon as its verdict is there, and not authentic. soon_o is 1 from a few
// cycles before that: all words of the packet have gone into its tag. again_i, one cycle, with what
// jobs_i is from the next one on: what was checked before counts no more. Until checked_o the frame's
// words are read here: word_i is word_at_o of two cycles before.
module sw_check
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
#(
  parameter int unsigned Jobs = 4,
  parameter int unsigned TagWordCycles = 2
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  job_entry_t [Jobs-1:0] jobs_i,
  input  logic                  again_i,
  input  logic                  packet_valid_i,
  input  packet_t               packet_i,  // its verdict two cycles later
  input  logic                  done_i,
  output word_at_t              word_at_o,
  input  word_t                 word_i,
  output logic                  soon_o,
  output logic                  checked_o,
  output logic                  authentic_o
);

  typedef enum logic [2:0] {
    StWait,
    StLook,   // for the job
    StSort,   // by verdict
    StTag,
    StChecked
  } state_e;

  state_e state_q, state_d;
  logic again_q;  // the tag that is being made is with a key that counts no more
  logic tag_start, tag_valid, tag_runs;
  logic [63:0] tag;
  header_t header;
  assign header = packet_i.head.header;

  logic [Jobs-1:0] hits_q;
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
    .WordCycles(TagWordCycles)
  ) u_tagger (
    .clk_i,
    .rst_ni,
    .start_i        (tag_start),
    .key_i          (key),
    .header_i       (header),
    .payload_bytes_i(packet_i.bytes - bytes_t'(HeadBytes)),
    .word_at_o,
    .word_i,
    .runs_o         (tag_runs),
    .tag_valid_o    (tag_valid),
    .tag_o          (tag)
  );

  assign tag_start = state_q == StSort && state_d == StTag;
  assign soon_o = checked_o || (state_q == StTag && !tag_runs && !again_q);
  assign checked_o = state_q == StChecked;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StWait: if (packet_valid_i) state_d = StLook;
      StLook: state_d = StSort;
      StSort: state_d = packet_i.verdict == VerdictPacket && hits_q != '0 ? StTag : StChecked;
      StTag: if (tag_valid) state_d = again_q ? StWait : StChecked;
      default: if (done_i) state_d = StWait;
    endcase
    if (again_i && (state_q != StTag || tag_valid)) state_d = StWait;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StWait;
      again_q <= 1'b0;
    end else begin
      state_q <= state_d;
      again_q <= state_q == StTag && (again_q || again_i);
    end
  end
  always_ff @(posedge clk_i) begin
    authentic_o <= state_q == StTag ? tag == header.tag : state_q == StChecked && authentic_o;
  end

  logic unused_packet;
  assign unused_packet = ^packet_i;

  done_with_what_is_checked :
  assert property (@(posedge clk_i) disable iff (!rst_ni) done_i |-> checked_o);

endmodule
