/// A good input for a fuzzer to begin with.
package struct FuzzSeed: Sendable {
  /// A name that is unique among the seeds of a target, and can be one of a file.
  package var name: String

  /// The input.
  package var bytes: [UInt8]

  init(_ name: String, _ bytes: [UInt8]) {
    self.name = name
    self.bytes = bytes
  }

  init(_ name: String, _ text: String) { self.init(name, Array(text.utf8)) }
}
