import ArgumentParser
import Backup
import Foundation
import Inbox
import Lazaret
import ManagedObjectModel
import ObjectStorage
import Platform
import SupportBundle
import SwiftModelSources
import SystemPackage

/// `lazaret work`: runs the jobs of an inbox on another machine.
struct WorkCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "work", abstract: "Opens and salvages the bundles of an inbox whose records are in PostgreSQL.",
    usage: "lazaret work --database <url> (--bundles <address> | --home <dir>) [<options>]",
    discussion: """
      Takes jobs from the database, and does them by processes of its own with limits and a sandbox, as lazaret serve \
      --inbox does. Any number of machines may work; each job is done by one.

      With --bundles it fetches each bundle into a folder of its own, below --home or else among the temporary files, and \
      keeps what it makes of it in the object storage. Without, the home is the folder of the machine that receives: all \
      machines share it.

      It works until Ctrl-C or SIGTERM; a job that was begun is given back then. Where it dies, the job comes back within a \
      minute. A job that failed too often stays with its reason on the bundle's page.
      """, examples: "lazaret work --database postgresql://db/lazaret --bundles s3://box/p",
    "lazaret work --database postgresql://db/lazaret --home Support")

  @OptionGroup var database: DatabaseOptions
  @OptionGroup var bundles: BundleOptions
  @OptionGroup var home: HomeOptions

  @Option(
    help:
      "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, or a .sql schema; may be given several times. If not given, what LAZARET_MODEL names."
  )
  var model: [PathArgument] = []

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(help: .text("The file with the secret key by which encrypted bundles are opened.", "file"))
  var identity: PathArgument?

  @Option(
    help: .text(
      "The most bytes of all bundles, with what they unpack to and what is salvaged of them; as lazaret serve was given.",
      "size"))
  var quota = ByteCount(100 << 30)

  @Option(help: .text("How many bundles are opened or salvaged at a time, 1 to 16.", "number"))
  var workers = 1

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (1...16).contains(workers) else { throw ValidationError("Give 1 to 16 --workers.") }
  }

  /// - Parameter missing: the isolation that workers lack here.
  private func announce(_ home: FilePath, _ bundles: S3Address?, notIsolated missing: [String]) throws {
    if output.json {
      let announcement: JSON.Object = [
        "home": bundles == nil ? PathText(home) : nil, "bundles": bundles?.description, "workers": workers,
        "workersNotIsolated": missing,
      ]
      return try Terminal.standardOutput.write(json: announcement, .line)
    }
    if !missing.isEmpty {
      Terminal.standardError.write(
        "lazaret: this system does not keep workers apart by: \(missing.joined(separator: ", ")).\n")
    }
    let place = bundles?.description ?? home.string
    Terminal.standardOutput.write("Working at the jobs of \(printable(place)). Ctrl-C ends it.\n")
  }

  func perform() throws {
    guard let address = try database.address() else {
      throw InboxError(
        .address, operation: "work at the inbox", detail: "no database is named",
        hint:
          "Give --database, or name it in LAZARET_DATABASE; an inbox whose records are in a file has its own workers."
      )
    }
    let bundles = try bundles.address()
    let folder = try bundles.map { _ in
      try PrivateFolder(
        in: self.home.home?.path ?? HomeOptions.environment, to: "work at the jobs of an inbox", .machine)
    }
    defer { withExtendedLifetime(folder) {} }
    let home = try FileSystem().realPath(folder?.path ?? self.home.current().existing(to: "work at its inbox").path)
    let models = ModelOption.chosen(model)
    try InboxWorkers.check(models)
    let identity = try InboxWorkers.identity(identity)
    let server = try PostgresDatabase(address, connections: workers + 2)
    var limits = InboxLimits()
    limits.totalBytes = quota.bytes
    let inbox =
      if let bundles {
        try Inbox(
          home: home, database: server, storage: BundleOptions.storage(bundles, home: home), receives: false,
          limits: limits, hasIdentity: identity != nil)
      } else {
        try Inbox(home: home, database: server, makesFolders: false, limits: limits, hasIdentity: identity != nil)
      }
    let pool = try InboxWorkers.pool(
      inbox, count: workers, identity: identity, models: models, order: try versionOrder.order(of: models),
      receives: false)
    Interruption.listen()
    try pool.start()
    let listener = PostgresListener(server, to: inbox.changes)
    try announce(inbox.home, bundles, notIsolated: ReceivingRun.notIsolated().map(\.rawValue))
    while !Interruption.isRequested { Thread.sleep(forTimeInterval: 0.1) }
    listener.stop()
    pool.stop()
  }
}

struct BundleOptions: ParsableArguments {
  static let variable = "LAZARET_BUNDLES"

  // Plain text: an invalid address may contain a secret and must not be shown.
  @Option(
    help: .text(
      "Object storage with the inbox's bundles, for any number of machines: s3://bucket/prefix. Its server and credentials are those of the environment and ~/.aws. If not given, what LAZARET_BUNDLES says, else the bundles are in the home.",
      "address"))
  var bundles: String?

  func validate() throws {
    do throws(BackupError) {
      if let bundles { _ = try S3Address(bundles) }
    } catch {
      throw ValidationError("--bundles: \(error.detail). \(error.hint)")
    }
  }

  /// - Throws: `s3-address` for the environment's.
  func address() throws(BackupError) -> S3Address? {
    if let bundles { return try S3Address(bundles) }
    guard let text = ProcessInfo.processInfo.environment[Self.variable], !text.isEmpty else { return nil }
    return try S3Address(text)
  }

  /// - Throws: `s3-settings`, `s3-credentials`.
  static func storage(
    _ address: S3Address, home: FilePath, copyBytes: Int64 = 0
  ) throws(BackupError) -> ObjectBundleStorage {
    let environment = S3Environment { ProcessInfo.processInfo.environment[$0] }
    let client = try environment.client(for: address, retries: .short)
    return ObjectBundleStorage(address, client, home: home, copyBytes: copyBytes)
  }
}

enum InboxWorkers {
  /// - Throws: if a file is no model that a worker reads.
  static func check(_ models: [FilePath]) throws {
    for path in models {
      let isOther = try ModelCarrier(path) != nil || ModelHistory(path) != nil
      guard try isOther || SwiftSources.isSource(path) else { continue }
      throw ModelError(
        .notAModel, path: path, detail: "the workers of an inbox read models, and no Swift sources or stores",
        hint: "Give the inbox a compiled model, such as lazaret model export writes.")
    }
  }

  /// - Throws: `inbox-address` for shared bundles without shared records, or without any worker.
  static func check(database: PostgresAddress?, bundles: S3Address?, workers: Int) throws(InboxError) {
    if bundles != nil, database == nil {
      throw InboxError(
        .address, operation: "open the inbox",
        detail: "bundles in object storage need records in a database, and none is named",
        hint: "Give --database, or name it in LAZARET_DATABASE.")
    }
    if workers < 1, bundles == nil {
      throw InboxError(
        .address, operation: "open the inbox", detail: "without workers the bundles would be opened nowhere",
        hint: "Give 1 to 16 --workers; 0 is for --bundles, where lazaret work does it.")
    }
  }

  /// Checks the secret key's file at once, instead of with every bundle; does not keep the key.
  static func identity(_ path: PathArgument?) throws -> FilePath? {
    let fileSystem = FileSystem()
    guard let identity = try path.map({ try fileSystem.realPath($0.path) }) else { return nil }
    let bytes = try fileSystem.contents(of: identity, limit: 1 << 20)
    do {
      _ = try AgeIdentity.identities(in: String(decoding: bytes, as: UTF8.self))
    } catch {
      throw CommandError(.unreadableIdentity, because: error, operation: "read the secret key", path: identity)
    }
    return identity
  }

  /// Makes idle worker processes of this program.
  ///
  /// - Parameters:
  ///   - order: a model's version names, oldest first.
  ///   - receives: whether this process receives.
  ///   - retention: nil keeps all.
  static func pool(
    _ inbox: Inbox, count: Int, identity: FilePath?, models: [FilePath], order: [String]?, receives: Bool,
    retention: InboxRetention? = nil
  ) throws -> WorkerPool {
    let fileSystem = FileSystem()
    guard let executable = PublicFolder.executable(fileSystem) else {
      throw FileError(
        .notFound, operation: "find this program", path: nil, detail: "the system does not tell where it is")
    }
    var options = WorkerPool.Options()
    options.count = count
    options.identity = identity
    options.models = try models.map { try fileSystem.realPath($0) }
    options.versionOrder = order
    options.resources = resources
    options.receives = receives
    options.retention = retention
    options.onPruning = { pruning in
      for failure in pruning.failures {
        Terminal.standardError.write(
          "lazaret: the files of the bundle \(failure.bundle) cannot be removed: \(printable(failure.words))\n")
      }
    }
    options.onTrouble = { part, error in Terminal.standardError.write("lazaret: \(words(part, error))\n") }
    return WorkerPool(inbox, options: options, runner: WorkProcess(executable, ["inbox-worker"]))
  }

  private static func words(_ part: WorkerPool.Options.Part, _ error: (any Error)?) -> String {
    let what =
      switch part {
      case .jobs: "work at the jobs of the inbox"
      case .receiving: "keep what has arrived in the inbox"
      case .removing: "remove what the inbox keeps no longer"
      }
    guard let error else { return "can \(what) again" }
    let detail = (error as? any ReportableError).map { "\($0.detail) (\($0.code))" } ?? "an unforeseen failure"
    return "cannot \(what) now, and tries again: \(printable(detail))"
  }

  /// A worker's limits; the environment can change them, in MiB and seconds.
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
}

/// `lazaret inbox-worker`: runs one inbox job in a process that isolates itself; only for `serve --inbox`.
struct InboxWorkerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inbox-worker", abstract: "Does one job of an inbox.", shouldDisplay: false)

  @Argument(help: "The file with the order.") var order: PathArgument

  @Flag(help: "Do nothing but try what a worker cannot do; the order is a folder.")
  var isTrial = false

  /// Applies a worker's isolation, tries to escape and reports the outcome.
  private func tryIsolation() throws {
    let folder = order.path
    let isolation = WorkIsolation.apply(readable: [], writable: [])
    let trial: JSON.Object = [
      "reached": isolation.reached.map(\.rawValue).sorted(), "missing": isolation.missing.map(\.rawValue),
      "done": WorkIsolation.trials(outside: folder),
    ]
    try Terminal.standardOutput.write(json: trial, .line)
  }

  func run() throws {
    try report(json: true) {
      if isTrial { return try tryIsolation() }
      let fileSystem = FileSystem()
      let bytes = try fileSystem.contents(of: order.path, limit: 1 << 20)
      let order = try JSONDecoder().decode(WorkOrder.self, from: Data(bytes))
      try order.resources.apply()
      guard let writable = order.writable, let temporary = order.temporary else { throw ExitStatus.failed }
      for folder in writable + [temporary] { try fileSystem.makeDirectory(folder) }
      unsafe setenv("TMPDIR", temporary.string, 1)
      // Before any other thread starts.
      let isolation = WorkIsolation.apply(readable: order.readable, writable: writable)
      Self.endWithItsMaster()
      var result = BundleWork(order).run()
      result.isolation = isolation
      guard let path = order.result.path else { throw ExitStatus.failed }
      let text = try JSON.bytes(of: result, .line, to: "write the result", at: path)
      try fileSystem.writeAtomically(text, to: path, replacing: true, permissions: .ownerReadWrite)
    }
  }

  /// Exits when the parent, which holds this process's input open, ends.
  private static func endWithItsMaster() {
    WorkThread.start(named: "lazaret.master") {
      while true {
        do {
          guard let bytes = try FileHandle.standardInput.read(upToCount: 4096), !bytes.isEmpty else { _exit(1) }
        } catch {
          // Interrupted by a signal.
          Thread.sleep(forTimeInterval: 0.05)
        }
      }
    }
  }
}
