package import Platform
import SystemPackage

/// Where the settings of object storage are read: the variables of the environment, and the files of Amazon's tools.
package struct S3Environment: Sendable {
  /// A variable of the environment; nil where it is not set.
  package var variable: @Sendable (_ name: String) -> String?

  /// Where the files are read.
  package var fileSystem: FileSystem

  /// An environment.
  package init(fileSystem: FileSystem = FileSystem(), variable: @escaping @Sendable (_ name: String) -> String?) {
    self.variable = variable
    self.fileSystem = fileSystem
  }

  private static let operation = "read the settings of the object storage"

  /// The settings for a bucket.
  ///
  /// What a variable says goes before what a file says, as with Amazon's tools.
  ///
  /// - Throws: `s3-settings`, `s3-credentials`.
  package func settings(for address: S3Address) throws(S3Error) -> S3Settings {
    let isNamed = value("AWS_PROFILE") != nil
    let profile = value("AWS_PROFILE") ?? value("AWS_DEFAULT_PROFILE") ?? "default"
    let section = profile == "default" ? "default" : "profile \(profile)"
    let secrets = try file("AWS_SHARED_CREDENTIALS_FILE", or: "credentials")
    let config = try file("AWS_CONFIG_FILE", or: "config")
    let configured: (String) -> String? = { name in
      config?.value(name, in: section) ?? (section == "default" ? config?.value(name, in: "profile default") : nil)
    }
    let given = value("AWS_ENDPOINT_URL_S3") ?? value("AWS_ENDPOINT_URL") ?? configured("endpoint_url")
    let region = value("AWS_REGION") ?? value("AWS_DEFAULT_REGION") ?? configured("region") ?? "us-east-1"
    guard region.utf8.count <= 64, region.utf8.allSatisfy(Self.isOfRegion) else {
      throw Self.refused("the region is not one that a server can have")
    }
    let endpoint = try given.map { text throws(S3Error) in try self.endpoint(text) } ?? .amazon(region)
    let style = value("LAZARET_S3_ADDRESSING") ?? configured("s3.addressing_style") ?? "auto"
    // Certificates of Amazon's servers are for one label before the name.
    let isPath = given != nil || address.bucket.contains(".")
    let usesPathStyle: Bool
    switch style {
    case "auto": usesPathStyle = isPath
    case "path": usesPathStyle = true
    case "virtual": usesPathStyle = false
    default: throw Self.refused("the addressing style is neither path nor virtual nor auto")
    }
    let credentials = try credentials(secrets, configured, profile, isNamed: isNamed)
    return S3Settings(
      endpoint: endpoint, region: region, usesPathStyle: usesPathStyle, credentials: credentials,
      authorities: value("AWS_CA_BUNDLE"))
  }

  /// A client for the bucket of an address, which reads the credentials anew where they have ended.
  ///
  /// - Throws: `s3-settings`, `s3-credentials`.
  package func client(for address: S3Address, patience: S3Patience = S3Patience()) throws(S3Error) -> S3Client {
    var settings = try settings(for: address)
    settings.patience = patience
    return S3Client(address.bucket, settings) { [self] in
      // Where they cannot be read now, those that ended are told.
      try? self.settings(for: address).credentials
    }
  }

  // MARK: Parts

  private func credentials(
    _ secrets: AmazonConfiguration?, _ configured: @escaping (String) -> String?, _ profile: String, isNamed: Bool
  ) throws(S3Error) -> S3Credentials {
    // The variables go before the profile, named or not, as with Amazon's tools.
    let variables = (value("AWS_ACCESS_KEY_ID"), value("AWS_SECRET_ACCESS_KEY"))
    switch variables {
    case (let name?, let secret?): return try checked(name, secret, value("AWS_SESSION_TOKEN"))
    case (nil, nil): break
    default: throw Self.missing("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set")
    }
    for read in [{ secrets?.value($0, in: profile) }, configured] {
      guard let name = read("aws_access_key_id"), let secret = read("aws_secret_access_key") else { continue }
      return try checked(name, secret, read("aws_session_token"))
    }
    let others = ["credential_process", "role_arn", "sso_session", "sso_start_url", "web_identity_token_file"]
    if let other = others.first(where: { configured($0) != nil || secrets?.value($0, in: profile) != nil }) {
      throw Self.missing("the profile gets its credentials by \(other), which this software does not do")
    }
    throw Self.missing(
      isNamed
        ? "the profile \(printable(profile)) has none, in ~/.aws/credentials or ~/.aws/config"
        : "neither the environment nor ~/.aws/credentials has any")
  }

  private func checked(_ name: String, _ secret: String, _ token: String?) throws(S3Error) -> S3Credentials {
    // They stand in header fields, where a line's end would begin another one.
    for text in [name, secret, token ?? ""] {
      guard text.utf8.count <= 16384, text.utf8.allSatisfy({ (33...126).contains($0) }) else {
        throw Self.missing("they contain characters that credentials cannot have")
      }
    }
    return S3Credentials(accessKey: name, secretKey: secret, sessionToken: token)
  }

  private func endpoint(_ text: String) throws(S3Error) -> S3Endpoint {
    guard let endpoint = S3Endpoint(text) else {
      throw Self.refused("the endpoint is no address such as https://storage.example:9000")
    }
    guard endpoint.isEncrypted || endpoint.isLoopback || value("LAZARET_S3_ALLOW_HTTP") == "1" else {
      throw S3Error(
        .settings, operation: Self.operation,
        detail: "the endpoint is reached without encryption, and is not this machine",
        hint: "Use https, or set LAZARET_S3_ALLOW_HTTP=1 where the network between is trusted.")
    }
    return endpoint
  }

  private func value(_ name: String) -> String? { variable(name).flatMap { $0.isEmpty ? nil : $0 } }

  /// The file that a variable names, or that is at its usual place; nil where there is none there.
  private func file(_ name: String, or usual: String) throws(S3Error) -> AmazonConfiguration? {
    let path: FilePath
    if let given = value(name) {
      path = FilePath(given)
    } else if let home = value("HOME") {
      path = FilePath(home).appending(".aws").appending(usual)
    } else {
      return nil
    }
    do throws(FileError) {
      let bytes = try fileSystem.contents(of: path, limit: AmazonConfiguration.limit)
      guard let text = String(utf8: bytes) else { throw FileError(.other, operation: "read", detail: "it is no text") }
      return AmazonConfiguration(text)
    } catch {
      guard error.kind != .notFound else { return nil }
      throw S3Error(.settings, because: error, operation: Self.operation, path: path)
    }
  }

  private static func isOfRegion(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  private static func refused(_ detail: String) -> S3Error {
    S3Error(.settings, operation: operation, detail: detail)
  }

  private static func missing(_ detail: String) -> S3Error {
    S3Error(.credentials, operation: "find the credentials of the object storage", detail: detail)
  }
}

/// What requests are signed with; it never shows what it holds.
package struct S3Credentials: Sendable, Hashable {
  /// The name of the key.
  package let accessKey: String

  let secretKey: String

  /// What temporary credentials have besides; nil for lasting ones.
  let sessionToken: String?

  /// Credentials.
  package init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
    self.accessKey = accessKey
    self.secretKey = secretKey
    self.sessionToken = sessionToken
  }
}

extension S3Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// That there are credentials, and no more.
  package var description: String { "credentials" }

  /// The same.
  package var debugDescription: String { description }

  /// Nothing.
  package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A file of settings as Amazon's tools keep them: sections in brackets, and in them lines with a name and a value.
///
/// (AWS SDKs and Tools Reference Guide, "Shared config and credentials files".) Lines that are indented belong to the line
/// before them, which has no value of its own.
struct AmazonConfiguration {
  /// The largest file that is read, in bytes.
  static let limit = 1 << 20

  private var sections: [String: [String: String]] = [:]

  /// Reads a file; what is no setting is passed over, as Amazon's tools do.
  init(_ text: String) {
    var (section, parent) = (nil as String?, nil as String?)
    for line in text.split(whereSeparator: \.isNewline) {
      let isIndented = line.first == " " || line.first == "\t"
      let content = Self.trimmed(line)
      guard let first = content.first, first != "#", first != ";" else { continue }
      if first == "[" {
        guard let end = content.firstIndex(of: "]") else { continue }
        let words = content[content.index(after: content.startIndex)..<end].split(whereSeparator: \.isWhitespace)
        section = words.joined(separator: " ")
        parent = nil
        continue
      }
      guard let section, let equals = content.firstIndex(of: "=") else { continue }
      let name = Self.trimmed(content[..<equals]).lowercased()
      let value = Self.value(content[content.index(after: equals)...])
      if isIndented, let parent {
        sections[section, default: [:]]["\(parent).\(name)"] = value
      } else {
        parent = value.isEmpty ? name : nil
        sections[section, default: [:]][name] = value
      }
    }
  }

  /// Whether there is a section.
  func has(_ section: String) -> Bool { sections[section] != nil }

  /// A setting; nil where there is none, or an empty one.
  ///
  /// One that belongs to another is named with a point between: `s3.name`.
  func value(_ name: String, in section: String) -> String? {
    sections[section]?[name].flatMap { $0.isEmpty ? nil : $0 }
  }

  private static func trimmed(_ text: Substring) -> Substring {
    var text = text.drop(while: \.isWhitespace)
    while text.last?.isWhitespace == true { text.removeLast() }
    return text
  }

  /// A value without a comment behind it, which a space comes before.
  private static func value(_ text: Substring) -> String {
    var end = text.startIndex
    var isAfterSpace = true
    while end < text.endIndex {
      if isAfterSpace, text[end] == "#" || text[end] == ";" { break }
      isAfterSpace = text[end].isWhitespace
      end = text.index(after: end)
    }
    return String(trimmed(text[..<end]))
  }
}

/// How a server of the S3 protocol is reached.
package struct S3Settings: Sendable {
  /// The server.
  package var endpoint: S3Endpoint

  /// The region that requests are signed for.
  package var region: String

  /// Whether the bucket is the first part of the path, and not of the host's name.
  package var usesPathStyle: Bool

  /// What requests are signed with.
  package var credentials: S3Credentials

  /// A file with the authorities whose certificates are trusted; nil for those of the system.
  package var authorities: String?

  /// How long is waited.
  package var patience = S3Patience()

  /// How a server is reached.
  package init(
    endpoint: S3Endpoint, region: String, usesPathStyle: Bool, credentials: S3Credentials, authorities: String? = nil
  ) {
    self.endpoint = endpoint
    self.region = region
    self.usesPathStyle = usesPathStyle
    self.credentials = credentials
    self.authorities = authorities
  }
}

/// How long is waited for a server, and how often it is asked.
package struct S3Patience: Sendable, Hashable {
  /// The milliseconds for making a connection.
  package var connecting = 10_000

  /// The seconds for which fewer than ``slowest`` bytes a second may pass.
  package var stalling = 30

  /// The bytes a second below which a transfer counts as stalled.
  package var slowest = 512

  /// The seconds for an answer that the server has to work for, such as the end of a multipart upload.
  package var working = 300

  /// The seconds that one request takes at most.
  package var whole = 1800

  /// How often a request is sent at most; with its pauses, a server that begins anew has half a minute for it, mostly.
  package var attempts = 12

  /// The milliseconds that the first pause takes at most; each further one twice as many.
  package var firstPause = 200

  /// The milliseconds that any pause takes at most.
  package var longestPause = 10_000

  /// The seconds that a server can ask to wait, at most.
  package var longestPauseAsked = 30

  /// The usual.
  package init() {}

  /// That of a process whose caller waits, or which does other things meanwhile.
  package static var short: S3Patience {
    var patience = S3Patience()
    patience.attempts = 6
    return patience
  }

  /// The milliseconds that the pause before a further attempt takes at most.
  ///
  /// - Parameter attempt: the number of attempts that failed, from 1 on.
  package func pause(after attempt: Int) -> Int {
    min(longestPause, firstPause << min(max(attempt - 1, 0), 20))
  }
}

/// The server that requests go to.
package struct S3Endpoint: Sendable, Hashable {
  /// Whether the connection is encrypted.
  package let isEncrypted: Bool

  /// The name or address of the host, an address of IPv6 in its brackets.
  package let host: String

  /// The port; nil for the usual one.
  package let port: Int?

  /// What the paths of requests begin with, from its slash on; usually empty.
  package let path: String

  /// A server.
  package init(isEncrypted: Bool, host: String, port: Int? = nil, path: String = "") {
    self.isEncrypted = isEncrypted
    self.host = host
    self.port = port
    self.path = path
  }

  /// Amazon's own server of a region.
  package static func amazon(_ region: String) -> S3Endpoint {
    S3Endpoint(isEncrypted: true, host: "s3.\(region).amazonaws.com" + (region.hasPrefix("cn-") ? ".cn" : ""))
  }

  /// Reads the address of a server, such as `https://storage.example:9000`; nil for any other text.
  package init?(_ text: String) {
    let schemes = [("https://", true), ("http://", false)]
    guard let (scheme, isEncrypted) = schemes.first(where: { text.lowercased().hasPrefix($0.0) }) else { return nil }
    let rest = text.dropFirst(scheme.count)
    let slash = rest.firstIndex(of: "/") ?? rest.endIndex
    var (host, port) = (rest[..<slash], nil as Int?)
    let isBracketed = host.hasPrefix("[")
    if let colon = host.lastIndex(of: ":"), !isBracketed || host[..<colon].hasSuffix("]") {
      guard let number = UInt16(host[host.index(after: colon)...]), number > 0 else { return nil }
      (host, port) = (host[..<colon], Int(number))
    }
    if isBracketed {
      let address = host.dropFirst().dropLast()
      guard host.hasSuffix("]"), !address.isEmpty, address.utf8.allSatisfy(Self.isOfAddress) else { return nil }
    } else {
      guard !host.isEmpty, host.utf8.count <= 253, host.utf8.allSatisfy(Self.isOfName) else { return nil }
    }
    var path = rest[slash...]
    while path.last == "/" { path.removeLast() }
    guard path.utf8.allSatisfy({ Self.isOfName($0) || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "~") }),
      !path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        .contains(where: { ["", ".", ".."].contains($0) })
    else { return nil }
    let usual = isEncrypted ? 443 : 80
    self.init(
      isEncrypted: isEncrypted, host: host.lowercased(), port: port == usual ? nil : port, path: String(path))
  }

  private static func isOfName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  private static func isOfAddress(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: ":"), UInt8(ascii: "a")...UInt8(ascii: "f"),
      UInt8(ascii: "A")...UInt8(ascii: "F"), UInt8(ascii: "."):
      true
    default: false
    }
  }

  /// Whether it is this machine, as the address itself says.
  package var isLoopback: Bool {
    if host == "localhost" || host == "[::1]" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }

  /// The host, with the port where it is not the usual one, as requests name it.
  package func authority(bucket: String? = nil) -> String {
    (bucket.map { "\($0)." } ?? "") + host + (port.map { ":\($0)" } ?? "")
  }

  /// What addresses of requests begin with.
  package var scheme: String { isEncrypted ? "https" : "http" }
}
