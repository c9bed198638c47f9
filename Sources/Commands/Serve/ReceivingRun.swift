import ArgumentParser
import Foundation
import Inbox
import ObjectStorage
import Platform
import SystemPackage

struct ReceivingRun: ~Copyable {
  let inbox: Inbox

  let uploads: TusServer

  private let pool: WorkerPool
  private let lock: FolderLock
  private let listener: PostgresListener?

  /// Takes over a home's inbox and cleans up after a kill.
  ///
  /// - Parameters:
  ///   - database: the records' database; nil for a file in the home.
  ///   - bundles: the bundles' storage; nil for the home.
  ///   - order: a model's version names, oldest first.
  /// - Throws: `inbox-in-use` if another process receives; an error for an invalid key file.
  init(
    _ options: ReceivingOptions, home: FilePath, database: PostgresAddress?, bundles: S3Address?, models: [FilePath],
    order: [String]?
  ) throws {
    let identity = try InboxWorkers.identity(options.identity)
    var limits = InboxLimits()
    limits.bundleBytes = options.maxBundle.bytes
    limits.totalBytes = options.quota.bytes
    let server = try database.map { try PostgresDatabase($0) }
    let inbox =
      if let server, let bundles {
        try Inbox(
          home: home, database: server,
          storage: BundleOptions.storage(bundles, home: home, copyBytes: options.copies.bytes), receives: true,
          limits: limits, hasIdentity: identity != nil)
      } else if let server {
        try Inbox(home: home, database: server, limits: limits, hasIdentity: identity != nil)
      } else {
        try Inbox(home: home, limits: limits, hasIdentity: identity != nil)
      }
    let pool = try InboxWorkers.pool(
      inbox, count: options.workers, identity: identity, models: models, order: order, receives: true,
      retention: options.retention.rules)
    let lock = try inbox.lock()
    try inbox.finishInterrupted()
    try pool.start()
    self.lock = lock
    self.inbox = inbox
    self.pool = pool
    listener = server.map { PostgresListener($0, to: inbox.changes) }
    uploads = TusServer(inbox)
  }

  /// Returns the isolation that workers lack here, as tried by one.
  static func notIsolated() throws -> [WorkIsolation.Measure] {
    guard let executable = PublicFolder.executable(FileSystem()) else { return WorkIsolation.Measure.allCases }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: executable.string)
    process.arguments = ["inbox-worker", "--is-trial", NSTemporaryDirectory()]
    process.environment = ["SWIFT_BACKTRACE": "enable=no", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"].merging(
      ProcessInfo.processInfo.environment.filter { $0.key == "LD_LIBRARY_PATH" }
    ) { $1 }
    let output = Pipe()
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    struct Trial: Decodable {
      var missing: [String]
      var done: [String: Bool]
    }
    // Without an answer, assume no isolation.
    guard let trial = try? JSONDecoder().decode(Trial.self, from: bytes) else { return WorkIsolation.Measure.allCases }
    var missing = Set(trial.missing.compactMap { WorkIsolation.Measure(rawValue: $0) })
    // The attempt decides, not the kernel's claim.
    if ["socket", "socket6", "local", "program"].contains(where: { trial.done[$0] != false }) {
      missing.insert(.calls)
    }
    if ["read", "list", "write"].contains(where: { trial.done[$0] != false }) { missing.insert(.files) }
    return WorkIsolation.Measure.allCases.filter(missing.contains)
  }

  /// Ends the workers; their jobs restart at the next start.
  consuming func stop() {
    listener?.stop()
    pool.stop()
  }
}

struct ReceivingOptions: ParsableArguments {
  @Flag(help: "Receive bundles too, from senders with a token: lazaret inbox token new NAME.")
  var inbox = false

  @Option(help: .text("The file with the secret key by which encrypted bundles are opened.", "file"))
  var identity: PathArgument?

  @Option(help: .text("The most bytes of one bundle.", "size")) var maxBundle = ByteCount(4 << 30)

  @Option(help: .text("The most bytes of all bundles, with what they unpack to and what is salvaged of them.", "size"))
  var quota = ByteCount(100 << 30)

  @Option(
    help: .text(
      "How many bundles are opened or salvaged at a time, 1 to 16; with --bundles also 0, where lazaret work does it.",
      "number"))
  var workers = 1

  @Option(help: .text("With --bundles, the most bytes of copies that stay in the home.", "size"))
  var copies = ByteCount(10 << 30)

  @OptionGroup(title: "Which bundles are kept")
  var retention: InboxRetentionOptions

  func validate() throws {
    guard (0...16).contains(workers) else { throw ValidationError("Give 1 to 16 --workers.") }
    guard inbox || identity == nil else { throw ValidationError("--identity is for --inbox.") }
    guard inbox || retention.rules == nil else { throw ValidationError("--keep-… is for --inbox.") }
  }
}

struct ByteCount: ExpressibleByArgument {
  let bytes: Int64

  init(_ bytes: Int64) { self.bytes = bytes }

  init?(argument: String) {
    let digits = argument.prefix { $0.isASCII && $0.isNumber }
    let unit = argument.dropFirst(digits.count).drop { $0 == " " }.lowercased()
    let factors: [String: Int64] = [
      "": 1, "b": 1, "k": 1 << 10, "kb": 1000, "kib": 1 << 10, "m": 1 << 20, "mb": 1_000_000, "mib": 1 << 20,
      "g": 1 << 30, "gb": 1_000_000_000, "gib": 1 << 30, "t": 1 << 40, "tb": 1_000_000_000_000, "tib": 1 << 40,
    ]
    guard let number = Int64(digits), let factor = factors[unit] else { return nil }
    let (bytes, isTooLarge) = number.multipliedReportingOverflow(by: factor)
    guard !isTooLarge, bytes > 0 else { return nil }
    self.bytes = bytes
  }

  var defaultValueDescription: String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB")] where bytes % (1 << Int64(shift)) == 0 {
      return "\(bytes >> Int64(shift))\(unit)"
    }
    return String(bytes)
  }
}
