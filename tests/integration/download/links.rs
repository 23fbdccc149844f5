//! Links that expire, lead astray, or must not see the key.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::json;

use super::direct::{ONE_JOB, expiring};
use crate::support::{Answer, Service, Simulator, Workspace, answer_of_video, has_code, json as answer, raw, video};

type Content = Box<dyn Fn() -> Answer + Send + Sync>;

type IsGood = fn(&str) -> bool;

#[test]
fn expired_link_is_renewed_before_the_content_endpoint() {
    let refused = || raw(404, &[], "");
    let table: [(&str, Content, IsGood); 5] = [
        ("a new link of the task", Box::new(refused), |path| path == "/videos/1.mp4"),
        ("bytes", Box::new(|| Answer::Bytes(answer_of_video("t0"))), |_| false),
        ("a redirect", Box::new(|| raw(302, &[("location", "/videos/good.mp4")], "")), |path| {
            path.ends_with("/good.mp4")
        }),
        ("the link that it gave first", Box::new(refused), |_| true),
        ("nothing", Box::new(refused), |_| false),
    ];
    for (what, content, is_good) in table {
        let (service, here) = (expiring(content, is_good), Workspace::with_manifest(ONE_JOB));
        if what == "nothing" {
            let ended = here.run(&service, &[]).ends_with(1);
            insta::assert_snapshot!(ended.stderr, @"
            1 job to submit for $0.90
            completed one
            warning[not-fetched]: can't download one; the next run tries again, free of charge: its link: HTTP 403; a new link: HTTP 403; the content endpoint: HTTP 404: not ready
            ");
            assert_eq!(here.states(), ["completed"], "a video that can't be had is paid for all the same");
            here.run(&service, &[]).ends_with(1);
        } else {
            here.run(&service, &[]).ends_with(0);
            assert_eq!(fs::read(here.path("shotlist-out/m/one.mp4")).expect(what), video("t0"));
        }
        assert_eq!(service.posts().len(), 1, "{what}: generated again");
        if what == "a new link of the task" {
            assert_eq!(here.report()["jobs"][0]["video_url"], format!("{}/videos/1.mp4", service.url()));
        }
    }
}

#[test]
fn content_endpoint_may_return_a_link() {
    let host = Service::scripted_wholly(|_| Answer::Bytes(answer_of_video("t0")));
    let link = json!({ "data": { "url": format!("{}/x.mp4", host.url()) } });
    let service = expiring(move || answer(200, &link), |_| false);
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).ends_with(0);
    assert_eq!(fs::read(here.path("shotlist-out/m/one.mp4")).expect("the video"), video("t0"));
    assert_eq!(host.asked()[0].headers.get("authorization"), None, "the key went to a video host");
}

#[test]
fn key_goes_to_tasks_of_the_service_only() {
    let host = Service::scripted_wholly(|asked| match asked.path.as_str() {
        "/elsewhere.mp4" => Answer::Bytes(answer_of_video("t0")),
        _ => raw(403, &[], ""),
    });
    let other = host.url();
    let service = Service::scripted_wholly(move |asked| match asked.path.as_str() {
        "/v1/videos" => Answer::Well,
        // From the service to itself, and then to another port of the same machine.
        "/v1/videos/t0/content" => raw(307, &[("location", "/admin/delete?all=1")], ""),
        "/admin/delete?all=1" => raw(307, &[("location", &format!("{other}/elsewhere.mp4"))], ""),
        _ => answer(200, &json!({ "id": "t0", "status": "completed", "video_url": format!("{other}/expired.mp4") })),
    });
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).ends_with(0);
    let keys = |service: &Service| -> Vec<(String, bool)> {
        let gets = service.asked().into_iter().filter(|asked| asked.method == "GET");
        gets.map(|asked| (asked.path, asked.headers.contains_key("authorization"))).collect()
    };
    assert_eq!(keys(&host), [("/expired.mp4".to_owned(), false), ("/elsewhere.mp4".to_owned(), false)]);
    // The task and its content, and no other path.
    let paths = ["/v1/videos/t0", "/v1/videos/t0/content"];
    assert!(keys(&service).contains(&("/admin/delete?all=1".to_owned(), false)));
    assert!(keys(&service).iter().all(|(path, has_key)| *has_key == paths.contains(&&**path)), "{:?}", keys(&service));
}

#[test]
fn key_is_not_sent_after_a_redirect_from_another_host() {
    let (host, service) = (Arc::new(OnceLock::<String>::new()), Arc::new(OnceLock::<String>::new()));
    let to = Arc::clone(&service);
    let other = Service::scripted_wholly(move |_| {
        raw(307, &[("location", &format!("{}/v1/videos/t9/content", to.get().expect("a service")))], "")
    });
    host.set(other.url()).expect("once");
    let own = Service::scripted_wholly(move |asked| match asked.path.as_str() {
        "/v1/videos" => Answer::Well,
        "/v1/videos/t9/content" => Answer::Bytes(answer_of_video("t0")),
        _ => answer(
            200,
            &json!({ "id": "t0", "status": "completed", "video_url": format!("{}/a.mp4", host.get().expect("a host")) }),
        ),
    });
    service.set(own.url()).expect("once");
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&own, &[]).ends_with(0);
    let asked = own.asked();
    let content = asked.iter().find(|asked| asked.path == "/v1/videos/t9/content").expect("it was redirected");
    assert!(!content.headers.contains_key("authorization"), "{:?}", content.headers);
}

#[test]
fn videos_arrive_after_links_of_the_simulator_expire() {
    let here = Workspace::with_manifest(ONE_JOB);
    let simulator = Simulator::start(&here, &["--speed", "2000", "--fault", "expired-url=1"]);
    here.shotlist(&["run", "m.yaml", "--yes"]).with_service(simulator.url()).ends_with(0);
    let row = here.report()["jobs"][0].clone();
    let bytes = fs::read(here.path("shotlist-out/m/one.mp4")).expect("the video");
    assert_eq!(row["bytes"], bytes.len());
    assert_eq!(simulator.ledger()["charges"].as_array().map_or(1, Vec::len), 1);
}

#[test]
fn changed_key_of_an_account_gets_new_links() {
    let is_good = Arc::new(AtomicBool::new(false));
    let good = Arc::clone(&is_good);
    let service = expiring(|| raw(404, &[], ""), move |path| path != "/videos/0.mp4" && good.load(Ordering::SeqCst));
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).ends_with(1);
    is_good.store(true, Ordering::SeqCst);
    let other = |args: &[&str]| here.run(&service, args).env("SHOTLIST_API_KEY", "rotated");
    other(&[]).ends_with(1).line("--same-account");
    other(&["--same-account"]).ends_with(0);
    other(&[]).ends_with(0);
    assert_eq!(fs::read(here.path("shotlist-out/m/one.mp4")).expect("the video"), video("t0"));
}

#[test]
fn dead_link_of_an_old_take_fails_no_later_run() {
    let service = Service::scripted_wholly(|asked| match asked.path.as_str() {
        "/videos/t0.mp4" => raw(403, &[], ""),
        path if path.ends_with("/content") => raw(404, &[], ""),
        path if path.starts_with("/videos/") => Answer::Bytes(answer_of_video(path)),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(ONE_JOB);
    here.run(&service, &[]).ends_with(1);
    here.write("m.yaml", ONE_JOB.replace("prompt: x", "prompt: y"));
    for _ in 0..2 {
        let ended = here.run(&service, &[]).ends_with(0);
        assert!(has_code(&ended.stderr, "not-fetched"), "{}", ended.stderr);
        assert!(here.path("shotlist-out/m/one.mp4").exists());
    }
}

#[test]
fn link_into_a_private_network_is_not_followed() {
    for link in ["http://169.254.169.254/latest/meta-data", "http://10.255.255.1/x.mp4", "http://user:pw@127.0.0.1:1/x"]
    {
        let service = Service::scripted(move |asked| match asked.method.as_str() {
            "POST" => Answer::Well,
            _ if asked.path.ends_with("/content") => raw(404, &[], ""),
            _ => answer(200, &json!({ "status": "completed", "video_url": link })),
        });
        let here = Workspace::with_manifest("version: 1\njobs: [{ id: a, model: alpha-2, prompt: a }]\n");
        let ended = here.run(&service, &[]).ends_with(1);
        let told = if link.contains('@') { "a user name or a password" } else { "--allow-private-hosts follows it" };
        assert!(ended.stderr.contains(told), "{link}: {}", ended.stderr);
        let left: Vec<String> =
            here.files().into_iter().filter(|file| file.rsplit('.').next() == Some("part")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
