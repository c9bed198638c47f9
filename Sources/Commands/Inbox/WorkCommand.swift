import ArgumentParser
import Backup
import Foundation
import Inbox
import Lazaret
import ObjectStorage
import Platform
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
