import AgeEncryption
import Foundation
import HTTPServer
import Inbox
import StoreCoordination

/// An inbox that receives, and its workers, until they are stopped.
struct ReceivingRun: ~Copyable {
  /// The inbox.
  let inbox: Inbox

  /// What answers its senders.
  let uploads: TusServer

  private let pool: WorkerPool
  private let lock: FolderLock

  /// Takes the inbox of a home, and ends what a kill left.
  ///
  /// - Parameters:
  ///   - models: the files of the app's models, for salvages.
  ///   - order: the names of a model's versions, oldest first.
  /// - Throws: `inbox-in-use` where another process receives in it; where the file of the key holds none.
  init(_ options: ReceivingOptions, home: FilePath, models: [FilePath], order: [String]?) throws {
    let fileSystem = FileSystem()
    let identity = try options.identity.map { try fileSystem.realPath($0.path) }
    if let identity {
      // A wrong file is told now, and not by every bundle; the key itself goes again at once.
      let bytes = try fileSystem.contents(of: identity, limit: 1 << 20)
      do {
        _ = try AgeIdentity.identities(in: String(decoding: bytes, as: UTF8.self))
      } catch {
        throw CommandError(.unreadableIdentity, because: error, operation: "read the secret key", path: identity)
      }
    }
    var limits = InboxLimits()
    limits.bundleBytes = options.maxBundle.bytes
    limits.totalBytes = options.quota.bytes
    guard let executable = PublicFolder.executable(fileSystem) else {
      throw FileError(
        .notFound, operation: "find this program", path: nil, detail: "the system does not tell where it is")
    }
    let models = try models.map { try fileSystem.realPath($0) }
    let inbox = try Inbox(home: home, limits: limits, hasIdentity: identity != nil)
    let pool = WorkerPool(
      inbox,
      options: WorkerPool.Options(
        count: options.workers, identity: identity, models: models, versionOrder: order, resources: Self.resources),
      runner: WorkProcess(executable, ["inbox-worker"]))
    let lock = try Self.begin(inbox, pool)
    self.lock = lock
    self.inbox = inbox
    self.pool = pool
    uploads = TusServer(inbox)
  }

  private static func begin(_ inbox: Inbox, _ pool: WorkerPool) throws -> FolderLock {
    let lock = try inbox.lock()
    try inbox.finishInterrupted()
    try pool.start()
    return lock
  }

  /// What workers cannot be kept from on this system, as one of them found by trying.
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
    // One that could not even tell was kept from nothing that is known.
    guard let trial = try? JSONDecoder().decode(Trial.self, from: bytes) else { return WorkIsolation.Measure.allCases }
    var missing = Set(trial.missing.compactMap { WorkIsolation.Measure(rawValue: $0) })
    // What could be done counts, whatever the kernel said.
    if ["socket", "socket6", "local", "program"].contains(where: { trial.done[$0] != false }) {
      missing.insert(.calls)
    }
    if ["read", "list", "write"].contains(where: { trial.done[$0] != false }) { missing.insert(.files) }
    return WorkIsolation.Measure.allCases.filter(missing.contains)
  }

  /// What a worker may use; the environment can say less or more, in MiB and seconds.
  private static var resources: WorkLimits {
    var limits = WorkLimits()
    let environment = ProcessInfo.processInfo.environment
    if let memory = environment["LAZARET_WORKER_MEMORY"].flatMap(UInt64.init), (64...1 << 20).contains(memory) {
      limits.memory = memory << 20
    }
    if let seconds = environment["LAZARET_WORKER_SECONDS"].flatMap(Int.init), (1...86_400).contains(seconds) {
      limits.seconds = seconds
    }
    return limits
  }

  /// Ends the workers; what they were at is begun anew at the next start.
  consuming func stop() { pool.stop() }
}
