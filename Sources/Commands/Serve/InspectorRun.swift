import Foundation
import HTTPServer
import Inbox
import Inspector
import Lazaret
import Platform
import SystemPackage

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
    if let linkFile {
      try FileSystem().writeAtomically(Array((link + "\n").utf8), to: linkFile, replacing: true)
    }
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
      options.tls = ServerOptions.TLS(certificate: try text(tls.certificate), key: try text(tls.key))
    }
    return options
  }

  func origin(at port: UInt16) -> String {
    if !proxies.isEmpty, let name = names.first { return "https://\(name)" }
    return "\(tls == nil ? "http" : "https")://\(names.first ?? Self.host(isAny ? "127.0.0.1" : address)):\(port)"
  }
}
