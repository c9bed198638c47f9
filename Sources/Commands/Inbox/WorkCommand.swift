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
    commandName: "work", abstract: "Opens and salvages the bundles of an inbox whose records are in PostgreSQL.",
    usage: "lazaret work --database <url> (--bundles <address> | --home <dir>) [<options>]",
    discussion: """
      Takes jobs from the database, and does them by processes of its own with limits and a sandbox, as lazaret serve \
      --inbox does. Any number of machines may work; each job is done by one.

      With --bundles it fetches each bundle into a folder of its own, below --home or else among the temporary files, and \
      keeps what it makes of it in the object storage. Without, the home is the folder of the machine that receives: all \
      machines share it.

      It works until Ctrl-C or SIGTERM; a job that was begun is given back then. Where it dies, the job comes back within a \
      minute. A job that failed too often stays with its reason on the bundle's page.

      EXAMPLES
        lazaret work --database postgresql://db/lazaret --bundles s3://box/p
        lazaret work --database postgresql://db/lazaret --home Support

      \(ExitStatus.help)
      """)

  @OptionGroup var database: DatabaseOptions
  @OptionGroup var bundles: BundleOptions
  @OptionGroup var home: HomeOptions

  @Option(
    help: ArgumentHelp(
      "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, or a .sql schema; may be given several times. If not given, what LAZARET_MODEL names.",
      valueName: "model"))
  var model: [PathArgument] = []

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(
    help: ArgumentHelp("The file with the secret key by which encrypted bundles are opened.", valueName: "file"))
  var identity: PathArgument?

  @Option(
    help: ArgumentHelp(
      "The most bytes of all bundles, with what they unpack to and what is salvaged of them; as lazaret serve was given.",
      valueName: "size"))
  var quota = ByteCount(100 << 30)

  @Option(help: ArgumentHelp("How many bundles are opened or salvaged at a time, 1 to 16.", valueName: "number"))
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
    guard let place = try bundles.address() else {
      let home = try FileSystem().realPath(home.current().existing(to: "work at its inbox").path)
      return try work(address) { server, limits, hasIdentity in
        try Inbox(home: home, database: server, makesFolders: false, limits: limits, hasIdentity: hasIdentity)
      }
    }
    let folder = try PrivateFolder(
      in: home.home?.path ?? HomeOptions.environment, to: "work at the jobs of an inbox", .machine)
    let path = try FileSystem().realPath(folder.path)
    try work(address, bundles: place) { server, limits, hasIdentity in
      try Inbox(
        home: path, database: server, storage: BundleOptions.storage(place, home: path), receives: false,
        limits: limits, hasIdentity: hasIdentity)
    }
    withExtendedLifetime(folder) {}
  }

  /// Works until interrupted.
  ///
  /// - Parameter open: opens the inbox with a database, limits, and whether the decryption key is available.
  private func work(
    _ address: PostgresAddress, bundles: S3Address? = nil,
    _ open: (PostgresDatabase, InboxLimits, Bool) throws -> Inbox
  ) throws {
    let models = ModelOption.chosen(model)
    try InboxWorkers.check(models)
    let identity = try InboxWorkers.identity(identity)
    let server = try PostgresDatabase(address, connections: workers + 2)
    var limits = InboxLimits()
    limits.totalBytes = quota.bytes
    let inbox = try open(server, limits, identity != nil)
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
    help: ArgumentHelp(
      "Object storage with the inbox's bundles, for any number of machines: s3://bucket/prefix. Its server and credentials are those of the environment and ~/.aws. If not given, what LAZARET_BUNDLES says, else the bundles are in the home.",
      valueName: "address"))
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
    return WorkerPool(
      inbox,
      options: WorkerPool.Options(
        count: count, identity: identity, models: try models.map { try fileSystem.realPath($0) }, versionOrder: order,
        resources: resources, receives: receives, retention: retention,
        onPruning: { pruning in
          for failure in pruning.failures {
            Terminal.standardError.write(
              "lazaret: the files of the bundle \(failure.bundle) cannot be removed: \(printable(failure.words))\n")
          }
        },
        onTrouble: { part, error in Terminal.standardError.write("lazaret: \(words(part, error))\n") }),
      runner: WorkProcess(executable, ["inbox-worker"]))
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
