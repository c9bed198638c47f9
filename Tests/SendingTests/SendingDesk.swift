import Platform
import SupportBundle
import SystemPackage
import TestSupport
import Testing

/// A home with a bundle in it, a receiver, and a clock that a test moves.
struct SendingDesk {
  let folder: TemporaryFolder
  let receiver: FakeReceiver
  let time = TestClock()
  let bundle: FilePath

  /// - Parameter size: how many bytes are packed, none of which packs well.
  init(size: Int = 40_000, level: BundleLevel = .scrubbed, isEncrypted: Bool = false, isOurs: Bool = true) throws {
    folder = try TemporaryFolder()
    receiver = FakeReceiver(isOurs: isOurs)
    var generator = SeededGenerator(seed: 7)
    let noise = (0..<size).map { _ in UInt8.random(in: 0...255, using: &generator) }
    let recipients = isEncrypted ? [AgeIdentity().recipient] : []
    let summary = try BundleWriter(to: recipients).write(
      [
        BundleItem("facts.json", .bytes(Array("{}".utf8)), words: "facts"),
        BundleItem("store/App.sqlite", .bytes(noise), words: "the store"),
      ], level: level, subject: .init(app: "com.example.Garage", store: "App", date: Timestamp(secondsSince1970: 1)),
      into: folder.path)
    bundle = try #require(summary.path.path)
  }

  var home: FilePath { folder.appending("Home") }

  func outbox(_ fileSystem: FileSystem = FileSystem(), limit: Int64 = Outbox.usualLimit) -> Outbox {
    Outbox(home: home, limit: limit, surroundings: time.surroundings(fileSystem))
  }

  func preview() throws -> BundlePreview { try BundlePreview(of: bundle, home: home) }

  func bytes() throws -> [UInt8] { try FileSystem().contents(of: bundle, limit: 1 << 28) }

  func address(_ path: String = "/inbox/uploads") throws -> ReceiverAddress {
    try ReceiverAddress(receiver.origin + path)
  }

  @discardableResult
  func add(
    to address: String? = nil, by method: OutboxEntry.Method = .tus, tokenFile: FilePath? = nil,
    in outbox: Outbox? = nil
  ) throws -> OutboxEntry {
    try (outbox ?? self.outbox()).add(
      try preview(), to: try ReceiverAddress(address ?? receiver.endpoint), by: method, tokenFile: tokenFile)
  }

  func sender(_ outbox: Outbox? = nil, tries: Int = 6, waits: Bool = false, part: Int = 10_000) -> Sender {
    Sender(
      of: outbox ?? self.outbox(), over: receiver,
      options: SendingOptions(tries: tries, waits: waits, partLimit: part, seed: 3), clock: time.clock)
  }

  /// Checks that the receiver has the bundle whole, and once.
  func expectArrived(_ comment: Comment? = nil, _ location: SourceLocation = #_sourceLocation) throws {
    let bytes = try bytes()
    let complete = receiver.complete
    #expect(complete.count == 1, comment, sourceLocation: location)
    #expect(complete.first == bytes, comment, sourceLocation: location)
  }

  /// The error that sending ends with.
  func failure(
    _ sender: Sender, _ id: String, _ location: SourceLocation = #_sourceLocation
  ) throws -> SupportBundleError {
    let error = #expect(throws: SupportBundleError.self, sourceLocation: location) { try sender.send(id) }
    return try #require(error)
  }

  /// The same, of the usual sender.
  func failure(_ id: String, _ location: SourceLocation = #_sourceLocation) throws -> SupportBundleError {
    try failure(sender(), id, location)
  }
}
