import ArgumentParser
import Foundation
import HTTPServer
import Inbox
import Inspector
import Lazaret
import Logging
import Platform
import SupportBundle
import SystemPackage

struct ServeCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "serve", abstract: "Shows quarantined stores, their damage and their records in a browser.",
    usage: "lazaret serve [--home <dir>] [--model <model> …] [<options>]",
    discussion: """
      Prints a single-use link, and opens the browser if there is one. Looking changes no byte of \
      any store. Ctrl-C ends it: what is running is ended in good order.

      It listens at 127.0.0.1. At any other address it speaks TLS, with --tls-cert and --tls-key; without them it \
      needs --insecure, and then others on the network can read what is sent.

      The files of its pages are looked for in LAZARET_PUBLIC, in ../share/lazaret/Public beside the executable, and in \
      Public in a folder above it.

      With --inbox it also receives bundles from senders with a token, by tus 1.0, and prints the address that they \
      are sent to: they are checked, unpacked and salvaged by processes of their own, with limits on memory and time.

      A proxy before it is named with --proxy and the name that browsers ask for with --host: it speaks TLS, and this \
      process plain HTTP, at 127.0.0.1. /healthz says whether the process can work, to every client; /metrics what it counts, \
      in Prometheus' text format, to this machine and to each --metrics-reader.
      """, examples: "lazaret serve --home Stores --model App.xcdatamodeld",
    "lazaret serve --home Support --inbox --identity support.key",
    "lazaret serve --inbox --proxy 127.0.0.1 --host support.example.com",
    "lazaret serve --inbox --database postgresql://db/lazaret",
    "lazaret serve --inbox --database postgresql://db/inbox --bundles s3://box/p")

  @OptionGroup var home: HomeOptions

  @Option(
    help:
      "The app's model: .xcdatamodeld, .xcdatamodel, .momd, .mom, Swift sources, a store that carries it, or a .sql schema; may be given several times. If not given, what LAZARET_MODEL names."
  )
  var model: [PathArgument] = []

  @OptionGroup var versionOrder: VersionOrderOptions
  @OptionGroup var listening: ListeningOptions
  @OptionGroup var receiving: ReceivingOptions
  @OptionGroup var database: DatabaseOptions
  @OptionGroup var bundles: BundleOptions
  @OptionGroup var sendTo: SendToOptions

  func validate() throws {
    guard receiving.inbox || database.database == nil else { throw ValidationError("--database is for --inbox.") }
    guard receiving.inbox || bundles.bundles == nil else { throw ValidationError("--bundles is for --inbox.") }
  }

  @Flag(help: "Show and export only; offer no action.") var readOnly = false

  @Flag(help: "Do not open the browser.") var noBrowser = false

  @OptionGroup var output: OutputOptions
  @OptionGroup var log: LogOptions

  func perform() throws {
    var options = InspectorOptions(
      home: try FileSystem().realPath(home.current().existing(to: "serve the inspector").path),
      publicFolder: try PublicFolder.find())
    let models = ModelOption.chosen(model)
    options.models = InspectorModel.named(
      try models.map { ($0.stem ?? "Model", try versionOrder.loadAppModel($0, json: output.json)) })
    options.allowsActions = !readOnly
    options.logger = log.logger(json: output.json)
    options.receiver = try sendTo.receiver
    options.metricsReaders = listening.metricsReaders
    options.meter = RequestMeter { [logger = options.logger] answer in logger.note(answer) }
    var run = InspectorRun(
      options: options, listening: listening.place, opensBrowser: !noBrowser, json: output.json,
      linkFile: listening.linkFile?.path)
    guard receiving.inbox else { return try run.run() }
    try InboxWorkers.check(models)
    let (address, place) = (try database.address(), try bundles.address())
    try InboxWorkers.check(database: address, bundles: place, workers: receiving.workers)
    let running = try ReceivingRun(
      receiving, home: options.home, database: address, bundles: place, models: models,
      order: try versionOrder.order(of: models))
    run.options.inbox = running.inbox
    run.uploads = running.uploads
    run.start = { _ in .to("inbox") }
    let result = Result {
      run.notIsolated = try ReceivingRun.notIsolated()
      try run.run()
    }
    running.stop()
    try result.get()
  }
}

struct SendToOptions: ParsableArguments {
  @Option(
    help: .text("Where bundles may be sent from the pages, such as https://support.example.com/inbox/uploads.", "url"))
  var sendTo: String?

  @Option(help: .text("A file with the token that the receiver gave you.", "file"))
  var tokenFile: PathArgument?

  /// - Throws: `send-request` for an invalid address; `FileError` for a missing token file.
  var receiver: InspectorReceiver? {
    get throws {
      guard let sendTo else { return nil }
      let address = try CommandLineSlip.telling { try ReceiverAddress(sendTo) }
      let file = try tokenFile.map { try FileSystem().realPath($0.path) }
      return InspectorReceiver(address, tokenFile: file)
    }
  }

  func validate() throws {
    guard sendTo != nil || tokenFile == nil else { throw ValidationError("--token-file belongs to --send-to.") }
  }
}

struct ListeningOptions: ParsableArguments {
  @Option(help: .text("The port; 0 for any that is free.", "number")) var port: UInt16 = 8080

  @Option(help: .text("The numeric address to listen at.", "address")) var listen = "127.0.0.1"

  @Option(help: .text("A name that browsers reach it by, besides the loopback's; several times.", "name"))
  var host: [String] = []

  @Option(help: .text("The certificate for TLS, in PEM.", "file")) var tlsCert: PathArgument?

  @Option(help: .text("The private key of the certificate, in PEM.", "file"))
  var tlsKey: PathArgument?

  @Option(
    help: .text(
      "The numeric address of a proxy in front of it that speaks TLS to the browsers: its X-Forwarded-For and X-Forwarded-Host are believed; several times. Give the name that browsers ask for with --host.",
      "address"))
  var proxy: [String] = []

  @Option(
    help: .text("A numeric address that may read /metrics, besides those of this machine; several times.", "address"))
  var metricsReader: [String] = []

  @Option(
    help: .text(
      "Write the single-use link into this file, which only its owner may read, instead of printing it.", "file"))
  var linkFile: PathArgument?

  @Flag(help: "Listen beyond this machine without TLS: others on the network can read what is sent.")
  var insecure = false

  var place: ListeningPlace {
    var place = ListeningPlace(address: listen, port: port, names: host)
    place.proxies = Set(proxy.compactMap(ClientAddress.init))
    if let tlsCert, let tlsKey { place.tls = (tlsCert.path, tlsKey.path) }
    return place
  }

  var metricsReaders: Set<ClientAddress> { Set(metricsReader.compactMap(ClientAddress.init)) }

  func validate() throws {
    for (name, texts) in [("proxy", proxy), ("metrics-reader", metricsReader)] {
      for text in texts where ClientAddress(text) == nil {
        throw ValidationError("\(text) is not a numeric address: give --\(name) one such as 127.0.0.1 or ::1.")
      }
    }
    guard proxy.isEmpty || !host.isEmpty else {
      throw ValidationError("Give --host with --proxy: the name that browsers ask the proxy for.")
    }
    guard (tlsCert == nil) == (tlsKey == nil) else { throw ValidationError("Give --tls-cert and --tls-key together.") }
    guard place.isLoopback || tlsCert != nil || insecure else {
      throw ValidationError(
        "\(listen) can be reached from other machines: give --tls-cert and --tls-key, or say --insecure.")
    }
    guard port != 0 || place.isLoopback else { throw ValidationError("Give a --port with --listen.") }
  }
}

extension Logger {
  /// Logs an answered request at `info`, with only the first path component, since the rest may concern a record.
  func note(_ answer: RequestMeter.Answer) {
    info(
      "request",
      metadata: [
        "method": "\(answer.method)", "area": "\(answer.area)", "status": "\(answer.status)",
        "milliseconds": "\((answer.duration / .milliseconds(1)).rounded())",
        "client": "\(answer.client?.description ?? "unknown")",
      ])
  }
}

struct InspectorRun {
  var options: InspectorOptions
  let listening: ListeningPlace
  let opensBrowser: Bool
  let json: Bool

  /// The file for the link, readable by its owner alone; nil prints it.
  var linkFile: FilePath?

  /// The handler of uploads, if any.
  var uploads: TusServer?

  /// The isolation that workers lack here; nil without an inbox.
  var notIsolated: [WorkIsolation.Measure]?

  /// The link's page.
  var start: (Inspector) throws -> RequestTarget = { _ in .to("stores") }

  /// Serves until Ctrl-C.
  ///
  /// - Throws: if the address is unavailable or the pages' files are missing.
  func run() throws {
    // Servers on different ports of a host share cookies, so each uses its own name.
    let sessions = Sessions(cookieName: "lazaret-\(Token.random().text.prefix(8))", isSecure: listening.isSecure)
    let inspector = try Inspector(options, sessions: sessions)
    Interruption.listen()
    var server = try listening.options()
    server.meter = options.meter
    let target = try start(inspector)
    let running = try Server(server) { [uploads] request, length in
      if let uploads, uploads.isAsked(request) { return uploads.intake(of: request, length: length) }
      return length == 0 ? nil : inspector.respondEarly(to: request).map { .refused($0) }
    } handler: { [uploads] request in
      if let uploads, uploads.isAsked(request) { return uploads.respond(to: request) }
      return inspector.respond(to: request)
    }
    do {
      try announce(sessions.makeLink(to: target), port: running.port)
    } catch {
      inspector.work.stop()
      running.stop()
      throw error
    }
    while !Interruption.isRequested { Thread.sleep(forTimeInterval: 0.1) }
    if !json { Terminal.standardError.note("Ending …\n") }
    inspector.work.stop()
    running.stop()
  }

  private static func words(_ measures: [WorkIsolation.Measure]) -> String {
    measures.map { measure in
      switch measure {
      case .privileges: "getting more rights"
      case .network: "the network of this machine"
      case .files: "files that are none of their job's"
      case .calls: "sockets and other programs"
      }
    }.joined(separator: ", ")
  }

  private func announce(_ token: Token, port: UInt16) throws {
    let origin = listening.origin(at: port)
    let link = "\(origin)/open/\(token.text)"
    let inbox = uploads == nil ? nil : origin + TusServer.shortPath
    if let linkFile { try FileSystem().writeAtomically(Array((link + "\n").utf8), to: linkFile, replacing: true) }
    if json {
      let announcement: JSON.Object = [
        "url": linkFile == nil ? link : nil, "port": port, "home": PathText(options.home), "sendTo": inbox,
        "workersNotIsolated": notIsolated?.map(\.rawValue),
      ]
      try Terminal.standardOutput.write(json: announcement, .line)
    } else {
      if !listening.isLoopback, listening.tls == nil, listening.proxies.isEmpty {
        Terminal.standardError.write(
          "lazaret: this is not encrypted: a third party on the way can read every record, and the link.\n")
      }
      if let notIsolated, !notIsolated.isEmpty {
        Terminal.standardError.write(
          "lazaret: this system does not keep the processes that open bundles from: \(Self.words(notIsolated)). "
            + "Receive bundles only from senders that you trust, or serve on a Linux with Landlock and seccomp.\n")
      }
      Terminal.standardOutput.writeContent(text(link, inbox))
    }
    if opensBrowser, !json { BrowserWindow.open(link) }
  }

  private func text(_ link: String, _ inbox: String?) -> String {
    let place =
      linkFile.map { "the single-use link in \(printable($0.string))" } ?? "this single-use link:\n\n  \(link)"
    var text = "The inspector of \(printable(options.home.string)) is at \(place)\n\n"
    if let inbox {
      let home = shellQuoted(options.home)
      text += """
        Bundles are received at this address, from senders with a token:

          lazaret send BUNDLE --to \(inbox) --token-file TOKEN

        A sender gets a token by: lazaret inbox token new NAME --home \(home)


        """
    }
    return text + "Ctrl-C ends it.\n"
  }
}

enum BrowserWindow {
  /// Whether a window is likely visible: a terminal, and a display on Linux.
  static var isLikely: Bool {
    guard Terminal.standardOutput.isInteractive else { return false }
    #if os(macOS)
      return true
    #else
      let environment = ProcessInfo.processInfo.environment
      return environment["DISPLAY"]?.isEmpty == false || environment["WAYLAND_DISPLAY"]?.isEmpty == false
    #endif
  }

  static func open(_ link: String) {
    guard isLikely, let tool = find() else { return }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: tool)
    process.arguments = [link]
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try? process.run()
  }

  private static func find() -> String? {
    #if os(macOS)
      return "/usr/bin/open"
    #else
      let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
      return folders.map { "\($0)/xdg-open" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    #endif
  }
}

struct ListeningPlace {
  var address = "127.0.0.1"

  /// The port; 0 for any free one.
  var port: UInt16 = 0

  /// The host names besides the loopback's.
  var names: [String] = []

  var proxies: Set<ClientAddress> = []

  /// Whether browsers use TLS, with this process or a proxy.
  var isSecure: Bool { tls != nil || !proxies.isEmpty }

  var tls: (certificate: FilePath, key: FilePath)?

  var isLoopback: Bool { address == "::1" || address.hasPrefix("127.") }

  private var isAny: Bool { address == "0.0.0.0" || address == "::" }

  private static func host(_ address: String) -> String { address.contains(":") ? "[\(address)]" : address }

  /// - Throws: `FileError` for an unreadable certificate or key.
  func options() throws -> ServerOptions {
    var options = ServerOptions()
    options.address = address
    options.port = port
    let own = isLoopback || isAny ? [] : [Self.host(address)]
    let usual: UInt16 = tls == nil ? 80 : 443
    options.hosts = Set((names + own).flatMap { port == usual ? [$0, "\($0):\(port)"] : ["\($0):\(port)"] })
    // A proxy's host header has no port, or the standard one of TLS.
    if !proxies.isEmpty { options.hosts.formUnion(names.flatMap { [$0, "\($0):443"] }) }
    options.proxies = proxies
    options.acceptsUnnamedOrigin = !isSecure && !isLoopback
    if let tls {
      let files = FileSystem()
      func text(_ path: FilePath) throws -> String {
        String(decoding: try files.contents(of: path, limit: 1 << 20), as: UTF8.self)
      }
      options.tls = (certificate: try text(tls.certificate), key: try text(tls.key))
    }
    return options
  }

  func origin(at port: UInt16) -> String {
    if !proxies.isEmpty, let name = names.first { return "https://\(name)" }
    return "\(tls == nil ? "http" : "https")://\(names.first ?? Self.host(isAny ? "127.0.0.1" : address)):\(port)"
  }
}

enum PublicFolder {
  /// Returns the first of: `LAZARET_PUBLIC`; `../share/lazaret/Public` beside the executable; `Public` in a folder
  /// above it, for builds among the sources.
  ///
  /// The program contains no path of the build machine.
  ///
  /// - Throws: `file-not-found` without a stylesheet.
  static func find() throws -> FilePath {
    let system = FileSystem()
    if let named = ProcessInfo.processInfo.environment["LAZARET_PUBLIC"], !named.isEmpty { return FilePath(named) }
    var candidates: [FilePath] = []
    if let executable = executable(system) {
      var folder = executable.removingLastComponent()
      candidates.append(folder.removingLastComponent().appending("share/lazaret/Public"))
      for _ in 0..<8 where folder.lastComponent != nil {
        candidates.append(folder.appending("Public"))
        folder.removeLastComponent()
      }
    }
    let found = try candidates.first { try system.status(of: $0.appending("lazaret.css")) != nil }
    if let found { return found }
    throw FileError(
      .notFound, operation: "find the files of the pages", path: candidates.first,
      detail: "they are not near the executable",
      hint: "Put the folder Public into ../share/lazaret beside the executable, or name it in LAZARET_PUBLIC.")
  }

  static func executable(_ system: FileSystem) -> FilePath? {
    for candidate in ["/proc/self/exe", CommandLine.arguments.first].compactMap(\.self) {
      // A bare name was found by PATH; only the system knows the file.
      if let path = try? system.realPath(FilePath(candidate)) { return path }
    }
    return nil
  }
}
