import Commands
import Testing

struct OptionHintsTests {
  @Test func everyHintGetsItsOptionsOnce() {
    for (hint, options) in OptionHints.options {
      #expect(hint.hasSuffix(".") && !hint.contains("--") && options.contains("--"), "\(hint)")
      let worded = OptionHints.worded("Look. \(hint)")
      #expect(worded == "Look. \(hint.dropLast()) (\(options)).")
      #expect(OptionHints.worded(worded) == worded)
    }
  }
}
