package import Backup
import Foundation
package import Platform
import SystemPackage

package struct S3Settings: Sendable {
  package var endpoint: S3Endpoint

  package var region: String

  /// Whether the bucket is in the path instead of the host name.
  package var usesPathStyle: Bool

  package var credentials: S3Credentials

  /// The file of trusted authorities; nil for the system's.
  var authorities: String?

  package var retries = S3RetryPolicy()

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

extension S3Client {
  /// Pauses randomly; returns the milliseconds.
  func pause(upTo most: Int) -> Int {
    let time = waiting.random(most)
    waiting.pause(time)
    return time
  }
}

/// A bucket or a prefix in it: `s3://bucket/prefix`.
///
/// Free of secrets, so it can be shown and logged.
package struct S3Address: Sendable, Hashable, CustomStringConvertible {
  package let bucket: String

  /// The key prefix without outer slashes; empty for the whole bucket.
  package let prefix: String

  static let scheme = "s3://"

  /// In bytes; a key has at most 1,024, and names follow the prefix.
  private static let longestPrefix = 700

  /// Parses an address.
  ///
  /// - Throws: `s3-address`, without a text that may hold a secret.
  package init(_ text: String) throws(BackupError) {
    guard text.hasPrefix(Self.scheme) else { throw Self.refused("it does not begin with s3://") }
    let rest = text.dropFirst(Self.scheme.count)
    // `user:secret@` must not be shown.
    guard !rest.contains("@") else { throw Self.refused("it contains @, and credentials are no part of an address") }
    guard !rest.contains(where: { $0 == "?" || $0 == "#" }) else { throw Self.refused("it contains ? or #") }
    let slash = rest.firstIndex(of: "/") ?? rest.endIndex
    let bucket = String(rest[..<slash])
    guard Self.isBucket(bucket) else { throw Self.refused("\(printable(bucket)) is not a name that a bucket can have") }
    self.bucket = bucket
    var prefix = rest[slash...].dropFirst()
    if prefix.last == "/" { prefix.removeLast() }
    guard prefix.utf8.count <= Self.longestPrefix else { throw Self.refused("its prefix is too long") }
    let parts = prefix.split(separator: "/", omittingEmptySubsequences: false)
    guard prefix.isEmpty || parts.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." }) else {
      throw Self.refused("a part of its prefix is empty, . or ..")
    }
    guard prefix.unicodeScalars.allSatisfy({ $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }) else {
      throw Self.refused("its prefix contains control characters")
    }
    self.prefix = String(prefix)
  }

  package func key(_ name: String) -> String { prefix.isEmpty ? name : "\(prefix)/\(name)" }

  package var description: String { Self.scheme + bucket + (prefix.isEmpty ? "" : "/" + prefix) }

  /// Whether a name follows Amazon's rules: 3 to 63 lower-case letters, digits, dots and hyphens, the first and last a
  /// letter or digit.
  ///
  /// (Amazon S3 User Guide, "General purpose bucket naming rules".)
  private static func isBucket(_ name: String) -> Bool {
    let bytes = Array(name.utf8)
    guard (3...63).contains(bytes.count), let first = bytes.first, let last = bytes.last else { return false }
    func isAlphanumeric(_ byte: UInt8) -> Bool { (97...122).contains(byte) || (48...57).contains(byte) }
    guard isAlphanumeric(first), isAlphanumeric(last), !name.contains("..") else { return false }
    return bytes.allSatisfy { isAlphanumeric($0) || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "-") }
  }

  private static func refused(_ detail: String) -> BackupError {
    BackupError(.s3Address, operation: "read the address of the object storage", detail: detail)
  }
}

package struct S3Endpoint: Sendable, Hashable {
  package let isEncrypted: Bool

  /// The host; an IPv6 address in brackets.
  let host: String

  /// Nil for the default port.
  let port: Int?

  /// The path prefix with its leading slash; usually empty.
  let path: String

  package init(isEncrypted: Bool, host: String, port: Int? = nil, path: String = "") {
    self.isEncrypted = isEncrypted
    self.host = host
    self.port = port
    self.path = path
  }

  static func amazon(_ region: String) -> S3Endpoint {
    S3Endpoint(isEncrypted: true, host: "s3.\(region).amazonaws.com" + (region.hasPrefix("cn-") ? ".cn" : ""))
  }

  /// Parses an address such as `https://storage.example:9000`.
  package init?(_ text: String) {
    guard let scheme = ["https://", "http://"].first(where: { text.lowercased().hasPrefix($0) }) else { return nil }
    let isEncrypted = scheme == "https://"
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
      guard !host.isEmpty, host.utf8.count <= 253, host.utf8.allSatisfy(\.isOfWord) else { return nil }
    }
    var path = rest[slash...]
    while path.last == "/" { path.removeLast() }
    guard path.utf8.allSatisfy({ $0.isOfWord || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "~") }),
      !path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        .contains(where: { ["", ".", ".."].contains($0) })
    else { return nil }
    let usual = isEncrypted ? 443 : 80
    self.init(isEncrypted: isEncrypted, host: host.lowercased(), port: port == usual ? nil : port, path: String(path))
  }

  private static func isOfAddress(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: ":"), UInt8(ascii: "a")...UInt8(ascii: "f"),
      UInt8(ascii: "A")...UInt8(ascii: "F"), UInt8(ascii: "."):
      true
    default: false
    }
  }

  /// Whether the address itself is this machine.
  package var isLoopback: Bool {
    if host == "localhost" || host == "[::1]" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }

  /// The host, with a non-default port.
  package func authority(bucket: String? = nil) -> String {
    (bucket.map { "\($0)." } ?? "") + host + (port.map { ":\($0)" } ?? "")
  }

  package var scheme: String { isEncrypted ? "https" : "http" }
}

/// A client's timeouts and retries.
package struct S3RetryPolicy: Sendable, Hashable {
  /// The milliseconds for connecting.
  var connecting = 10_000

  /// The seconds a transfer may stay below ``slowest``.
  package var stalling = 30

  /// The bytes per second below which a transfer stalls.
  var slowest = 512

  /// The seconds for a slow answer, such as completing an upload.
  var working = 300

  /// The seconds per request.
  var whole = 1800

  /// The attempts per request; the pauses usually span half a minute for a restarting server.
  package var attempts = 12

  /// The longest first pause in milliseconds; it doubles each time.
  var firstPause = 200

  /// The longest pause in milliseconds.
  var longestPause = 10_000

  /// The longest accepted `Retry-After`, in seconds.
  var longestPauseAsked = 30

  package init() {}

  /// For a process with a waiting caller or other work.
  package static var short: S3RetryPolicy {
    var retries = S3RetryPolicy()
    retries.attempts = 6
    return retries
  }

  /// The longest pause in milliseconds.
  ///
  /// - Parameter attempt: the failed attempts, from 1.
  package func pause(after attempt: Int) -> Int { min(longestPause, firstPause << min(max(attempt - 1, 0), 20)) }
}

/// A client's clock and pauses.
package struct S3Waiting: Sendable {
  var now: @Sendable () -> Timestamp

  var pause: @Sendable (_ milliseconds: Int) -> Void

  /// A random number from 0 to `most`.
  package var random: @Sendable (_ most: Int) -> Int

  package init(
    now: @escaping @Sendable () -> Timestamp, pause: @escaping @Sendable (_ milliseconds: Int) -> Void,
    random: @escaping @Sendable (_ most: Int) -> Int
  ) {
    self.now = now
    self.pause = pause
    self.random = random
  }

  package static let machine = S3Waiting(
    now: Surroundings.machine.now, pause: { Thread.sleep(forTimeInterval: Double($0) / 1000) },
    random: { Int.random(in: 0...max(0, $0)) })
}

/// The source of S3 settings: environment variables and the files of Amazon's tools.
package struct S3Environment: Sendable {
  var variable: @Sendable (_ name: String) -> String?

  var fileSystem: FileSystem

  package init(fileSystem: FileSystem = FileSystem(), variable: @escaping @Sendable (_ name: String) -> String?) {
    self.variable = variable
    self.fileSystem = fileSystem
  }

  private static let operation = "read the settings of the object storage"

  /// Reads a bucket's settings; variables override files, as with Amazon's tools.
  ///
  /// - Throws: `s3-settings`, `s3-credentials`.
  package func settings(for address: S3Address) throws(BackupError) -> S3Settings {
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
    guard region.utf8.count <= 64, region.utf8.allSatisfy({ $0.isOfWord && $0 != UInt8(ascii: ".") }) else {
      throw Self.refused("the region is not one that a server can have")
    }
    let endpoint = try given.map { text throws(BackupError) in try self.endpoint(text) } ?? .amazon(region)
    let usesPathStyle: Bool
    switch value("LAZARET_S3_ADDRESSING") ?? configured("s3.addressing_style") ?? "auto" {
    // Amazon's wildcard certificates cover one label only.
    case "auto": usesPathStyle = given != nil || address.bucket.contains(".")
    case "path": usesPathStyle = true
    case "virtual": usesPathStyle = false
    default: throw Self.refused("the addressing style is neither path nor virtual nor auto")
    }
    let credentials = try credentials(secrets, configured, profile, isNamed: isNamed)
    return S3Settings(
      endpoint: endpoint, region: region, usesPathStyle: usesPathStyle, credentials: credentials,
      authorities: value("AWS_CA_BUNDLE"))
  }

  /// Creates a client that rereads expired credentials.
  ///
  /// - Throws: `s3-settings`, `s3-credentials`.
  package func client(for address: S3Address, retries: S3RetryPolicy = S3RetryPolicy()) throws(BackupError) -> S3Client
  {
    var settings = try settings(for: address)
    settings.retries = retries
    return S3Client(address.bucket, settings) { [self] in
      // If rereading fails, report the expired ones.
      try? self.settings(for: address).credentials
    }
  }

  // MARK: Parts

  private func credentials(
    _ secrets: AmazonConfiguration?, _ configured: @escaping (String) -> String?, _ profile: String, isNamed: Bool
  ) throws(BackupError) -> S3Credentials {
    // Variables override any profile, as with Amazon's tools.
    switch (value("AWS_ACCESS_KEY_ID"), value("AWS_SECRET_ACCESS_KEY")) {
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

  private func checked(_ name: String, _ secret: String, _ token: String?) throws(BackupError) -> S3Credentials {
    // A line break would inject a header field.
    for text in [name, secret, token ?? ""] {
      guard text.utf8.count <= 16384, text.utf8.allSatisfy({ (33...126).contains($0) }) else {
        throw Self.missing("they contain characters that credentials cannot have")
      }
    }
    return S3Credentials(accessKey: name, secretKey: secret, sessionToken: token)
  }

  private func endpoint(_ text: String) throws(BackupError) -> S3Endpoint {
    guard let endpoint = S3Endpoint(text) else {
      throw Self.refused("the endpoint is no address such as https://storage.example:9000")
    }
    guard endpoint.isEncrypted || endpoint.isLoopback || value("LAZARET_S3_ALLOW_HTTP") == "1" else {
      throw BackupError(
        .s3Settings, operation: Self.operation,
        detail: "the endpoint is reached without encryption, and is not this machine",
        hint: "Use https, or set LAZARET_S3_ALLOW_HTTP=1 where the network between is trusted.")
    }
    return endpoint
  }

  private func value(_ name: String) -> String? { variable(name).flatMap { $0.isEmpty ? nil : $0 } }

  /// The file that a variable names, or the default one if it exists.
  private func file(_ name: String, or usual: String) throws(BackupError) -> AmazonConfiguration? {
    let usualPath = value("HOME").map { FilePath($0).appending(".aws").appending(usual) }
    guard let path = value(name).map({ FilePath($0) }) ?? usualPath else { return nil }
    do throws(FileError) {
      let bytes = try fileSystem.contents(of: path, limit: AmazonConfiguration.limit)
      guard let text = String(utf8: bytes) else { throw FileError(.other, operation: "read", detail: "it is no text") }
      return AmazonConfiguration(text)
    } catch  where error.kind == .notFound {
      return nil
    } catch {
      throw BackupError(.s3Settings, because: error, operation: Self.operation, path: path)
    }
  }

  private static func refused(_ detail: String) -> BackupError {
    BackupError(.s3Settings, operation: operation, detail: detail)
  }

  private static func missing(_ detail: String) -> BackupError {
    BackupError(.s3Credentials, operation: "find the credentials of the object storage", detail: detail)
  }
}

/// Credentials, which no description reveals.
package struct S3Credentials: Sendable, Hashable {
  package let accessKey: String

  let secretKey: String

  /// The token of temporary credentials.
  let sessionToken: String?

  package init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
    self.accessKey = accessKey
    self.secretKey = secretKey
    self.sessionToken = sessionToken
  }
}

extension S3Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "credentials" }

  package var debugDescription: String { description }

  package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A settings file of Amazon's tools: sections of `name = value` lines.
///
/// (AWS SDKs and Tools Reference Guide, "Shared config and credentials files".) Indented lines belong to the line
/// before.
struct AmazonConfiguration {
  static let limit = 1 << 20

  private var sections: [String: [String: String]] = [:]

  /// Parses a file, ignoring other lines, as Amazon's tools do.
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

  /// A non-empty setting; nested ones are named `s3.name`.
  func value(_ name: String, in section: String) -> String? {
    sections[section]?[name].flatMap { $0.isEmpty ? nil : $0 }
  }

  private static func trimmed(_ text: Substring) -> Substring {
    var text = text.drop(while: \.isWhitespace)
    while text.last?.isWhitespace == true { text.removeLast() }
    return text
  }

  /// Strips a comment after a space.
  private static func value(_ text: Substring) -> String {
    var isAfterSpace = true
    let end = text.firstIndex { character in
      defer { isAfterSpace = character.isWhitespace }
      return isAfterSpace && (character == "#" || character == ";")
    }
    return String(trimmed(text[..<(end ?? text.endIndex)]))
  }
}
